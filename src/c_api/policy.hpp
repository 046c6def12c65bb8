#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <opmux/opmux.h>
#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux::c_api {

/// Copies a struct that the caller filled in; missing fields at the end become zero. Fails with
/// "c.struct_size" if it is shorter than in the first version, which has `least` bytes.
template <class T>
Status read_sized(const T& from, size_t least, const char* what, T& into) {
  if (from.struct_size < least) {
    return {Code::invalid_argument, "c.struct_size",
            std::string(what) + ".struct_size is " + std::to_string(from.struct_size) +
                ", must be at least " + std::to_string(least)};
  }
  into = T{};
  std::memcpy(&into, &from, from.struct_size < sizeof(T) ? from.struct_size : sizeof(T));
  return {};
}

/// Fails with "c.null" if the list has a count but no items.
Result<std::vector<std::string>> read_list(const opmux_str_list& list, const char* what);

Result<Policy> read_policy(const opmux_policy* policy);

}  // namespace opmux::c_api
