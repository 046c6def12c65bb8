// The environment reader on arbitrary names and values: one NAME=value per line.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "policy/rules/environment.hpp"
#include "policy/rules/policy_set.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opmux::policy;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Variable> variables;
  while (!text.empty() && variables.size() < 64) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t sign = line.find('=');
    if (sign != line.npos) {
      variables.push_back(
          {"OPMUX_" + std::string(line.substr(0, sign)), std::string(line.substr(sign + 1))});
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  const auto environment = parse_environment(variables);
  if (!environment) {
    if (!environment.error().reason().starts_with("environment.")) std::abort();
    return 0;
  }
  if (!PolicyLayer::make(Source::environment, environment->policy, "environment")) std::abort();
  return 0;
}
