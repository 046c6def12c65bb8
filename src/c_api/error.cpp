#include "c_api/error.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include <opmux/opmux.h>
#include <opmux/runtime.hpp>

#include "base/locks.hpp"

namespace opmux::c_api {
namespace {

/// Limit for stored reason codes. There are few, but a plugin could invent new ones without end.
constexpr size_t kMostWords = 4096;

/// A copy of the reason code that lives as long as the process; empty beyond the limit.
opmux_str lasting(std::string_view word) noexcept try {
  if (word.empty()) return {nullptr, 0};
  using Words = std::set<std::string, std::less<>>;
  static constinit base::Lazy<base::ForkGuarded<Words>> kept;
  return kept.get().with([&](Words& words) -> opmux_str {
    auto at = words.find(word);
    if (at == words.end()) {
      if (words.size() == kMostWords) return {nullptr, 0};
      at = words.emplace(word).first;
    }
    return {at->data(), at->size()};
  });
} catch (...) {
  return {nullptr, 0};
}

/// Writes a failure whose reason lives as long as the process.
int32_t write(opmux_error* error, Code code, opmux_str reason, std::string_view message) noexcept;

}  // namespace

int32_t write_failure(opmux_error* error, Code code, std::string_view reason,
                      std::string_view message) noexcept {
  return write(error, code, error == nullptr ? opmux_str{} : lasting(reason), message);
}

int32_t write_out_of_memory(opmux_error* error) noexcept {
  return write(error, Code::resource, OPMUX_STR("c.memory"), "out of memory");
}

namespace {

int32_t write(opmux_error* error, Code code, opmux_str reason, std::string_view message) noexcept {
  const auto number = static_cast<int32_t>(code);
  if (error == nullptr) return number;
  error->outcome = number;
  error->code = reason;
  error->text_size = 0;
  if (error->text == nullptr || error->text_capacity == 0) return number;
  error->text_size = std::min(message.size(), error->text_capacity - 1);
  std::memcpy(error->text, message.data(), error->text_size);
  error->text[error->text_size] = '\0';
  return number;
}

}  // namespace

}  // namespace opmux::c_api

opmux_str opmux_version(void) { return OPMUX_STR(OPMUX_VERSION); }

opmux_str opmux_features(void) {
  const std::string_view features = opmux::features();
  return {features.data(), features.size()};
}

opmux_str opmux_code_name(int32_t code) {
  const std::string_view name = opmux::name_of(static_cast<opmux::Code>(code));
  return {name.data(), name.size()};
}
