/// Outcomes of plugin functions: with code and text, and from exceptions. Part of
/// <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <type_traits>

namespace opmux::plugin {

/// A borrowed text in the C form.
constexpr opmux_str str(std::string_view text) { return {text.data(), text.size()}; }

/// Writes an outcome, its stable code and a text to `error`, and returns the outcome. `code` must
/// have static lifetime; the text is copied and truncated to the room. `error` may be null.
///
///   namespace op = opmux::plugin;
///   auto check = [](const op::Call& call) -> int32_t {
///     if (call.tensor(0).rank() == 2) return OPMUX_OK;
///     return op::decline(call.error(), "acme.rank", "only matrices");
///   };
inline int32_t report(opmux_error* error, int32_t outcome, std::string_view code,
                      std::string_view text) noexcept {
  if (!error) return outcome;
  error->outcome = outcome;
  error->code = str(code);
  error->text_size = error->text ? std::min(text.size(), error->text_capacity) : 0;
  if (error->text_size > 0) std::memcpy(error->text, text.data(), error->text_size);
  return outcome;
}
/// Refuses before anything was written: the next candidate runs.
inline int32_t decline(opmux_error* error, std::string_view code, std::string_view text) noexcept {
  return report(error, OPMUX_DECLINED, code, text);
}
/// The caller's mistake: returned to the caller if the operator checks data.
inline int32_t invalid(opmux_error* error, std::string_view code, std::string_view text) noexcept {
  return report(error, OPMUX_INVALID_ARGUMENT, code, text);
}
/// A failure: outputs may be corrupted.
inline int32_t fail(opmux_error* error, std::string_view code, std::string_view text) noexcept {
  return report(error, OPMUX_FAILED, code, text);
}

/// Thrown where no outcome can be returned, such as in plan(): the next candidate runs.
///
///   namespace op = opmux::plugin;
///   auto plan = [](const op::Call& call) -> std::shared_ptr<void> {
///     if (call.tensor(0).rank() > 4) throw op::Declined("acme.rank", "at most 4 dimensions");
///     return std::make_shared<int>(4);
///   };
class Declined : public std::runtime_error {
 public:
  /// `code` must have static lifetime; `text` is copied.
  Declined(std::string_view code, const char* text) : std::runtime_error(text), code_(code) {}
  std::string_view code() const { return code_; }

 private:
  std::string_view code_;
};

/// Runs `body`; one that returns void gives OPMUX_OK.
template <class Body>
int32_t outcome_of(Body& body) {
  if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
    body();
    return OPMUX_OK;
  } else {
    return body();
  }
}

#if defined(__cpp_exceptions)
/// Runs `body` and turns exceptions into outcomes; the builders wrap every function with it.
template <class Body>
int32_t guarded(opmux_error* error, Body&& body) noexcept {
  try {
    return outcome_of(body);
  } catch (const Declined& declined) {
    return decline(error, declined.code(), declined.what());
  } catch (const std::bad_alloc&) {
    return report(error, OPMUX_RESOURCE, "plugin.memory", "out of memory");
  } catch (const std::exception& e) {
    return fail(error, "plugin.exception", e.what());
  } catch (...) {
    return fail(error, "plugin.exception", "threw an object that is not a std::exception");
  }
}
#else
template <class Body>
int32_t guarded(opmux_error*, Body&& body) noexcept {
  return outcome_of(body);
}
#endif

}  // namespace opmux::plugin
