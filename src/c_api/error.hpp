#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "base/no_callback.hpp"
#include "base/text.hpp"

/// Error reporting of the C API: a Status becomes an error number and a filled-in opmux_error.
namespace opmux::c_api {

/// Writes a failure to the caller's error, which may be null. Returns the error number.
int32_t write_failure(opmux_error* error, Code code, std::string_view reason,
                      std::string_view message) noexcept;

/// Writes `resource`, "c.memory". Allocates nothing.
int32_t write_out_of_memory(opmux_error* error) noexcept;

/// The reason of detail::out_of_memory().
inline constexpr std::string_view kNoMemory = "resource.memory";

/// Reports the result of a call and frees it; null is success.
inline int32_t report(Status::Detail* detail, opmux_error* error) noexcept {
  if (detail != nullptr) [[unlikely]] {
    const Status status(detail);
    // The name that the reason has in C.
    if (status.reason() == kNoMemory) return write_out_of_memory(error);
    return write_failure(error, status.code(), status.reason(), status.message());
  }
  if (error != nullptr) {
    error->outcome = OPMUX_OK;
    error->text_size = 0;
  }
  return OPMUX_OK;
}

/// Runs a body of the C API that returns a Status. Exceptions become failures. A call from a
/// function that must not call the runtime is refused ("runtime.callback").
template <class Body>
int32_t guarded(opmux_error* error, Body&& body) noexcept {
  try {
    if (Status refused = base::refuse_callback(); !refused.ok()) {
      return report(refused.release(), error);
    }
    return report(std::forward<Body>(body)().release(), error);
  } catch (const std::bad_alloc&) {
    return write_out_of_memory(error);
  } catch (const std::exception& exception) {
    return write_failure(error, Code::failed, "c.exception", exception.what());
  } catch (...) {
    return write_failure(error, Code::failed, "c.exception", "an unknown exception");
  }
}

/// Returns `invalid_argument` with the name of the first null pointer. `names` lists them in order
/// ("a, b").
template <class... Pointers>
Status none_null(std::string_view names, Pointers... pointers) {
  size_t at = 0;
  for (const bool is_null : {(pointers == nullptr)...}) {
    const std::string_view name = names.substr(at, names.find(", ", at) - at);
    if (is_null) return {Code::invalid_argument, "c.null", std::string(name) + " is null"};
    at += name.size() + 2;
  }
  return {};
}

/// Fails with "c.flags" if `flags` has bits that are not in `known`. `what` and `family` are names
/// for the message.
inline Status only_flags(uint32_t flags, uint32_t known, std::string_view what,
                         std::string_view family) {
  if ((flags & ~known) == 0) return {};
  return {Code::invalid_argument, "c.flags",
          base::concat(what, " has bits that are not ", family, " flags")};
}

}  // namespace opmux::c_api
