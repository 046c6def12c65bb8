#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include <opmux/status.hpp>

/// Handling of failed allocations. Code below the API throws std::bad_alloc and
/// leaves its objects as they were; the functions here stop the exception.
namespace opmux::base {

/// Runs the body of a function of the API, which returns a Status, a Result or a Status::Detail*.
/// Returns `resource`, "resource.memory", if there is not enough memory.
template <class Body>
auto or_out_of_memory(Body&& body) -> std::invoke_result_t<Body> {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    if constexpr (std::is_pointer_v<std::invoke_result_t<Body>>) {
      return detail::out_of_memory().release();
    } else {
      return detail::out_of_memory();
    }
  }
}

/// Runs work that can be left out or repeated later, such as filling a cache or logging. False if
/// there is not enough memory for it.
template <class Work>
bool if_memory(Work&& work) {
  try {
    std::forward<Work>(work)();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace opmux::base
