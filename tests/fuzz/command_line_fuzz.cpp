// Operator arguments in command-line syntax: an operator's name, then one argument per line.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include <opmux/opmux.hpp>

#include "cli/argument_text.hpp"

namespace {

opmux::Runtime& runtime() {
  static auto* const one = new opmux::Runtime(
      opmux::Runtime::create(
          {.environment = std::vector<std::pair<std::string, std::string>>{}, .backends = false})
          .value());
  return *one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto take_line = [&text] {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
  };
  const auto op = runtime().op(take_line());
  if (!op) return op.error().message().empty() ? (std::abort(), 0) : 0;
  opmux::cli::ArgumentTexts arguments(*op);
  for (int i = 0; i < 32 && !text.empty(); ++i) {
    const opmux::Status status = arguments.read(take_line());
    if (!status.ok() && status.message().empty()) std::abort();
  }
  (void)op->explain_arguments(arguments.arguments());
  return 0;
}
