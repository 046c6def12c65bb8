#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <opmux/opmux.h>
#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux::runtime {

/// Copies what a caller filled in, zeros where its struct is shorter than ours. Fails with
/// "c.struct_size" if it is shorter than the first version's, which ends at `least`.
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

/// Fails with "c.null" for a list without items.
Result<std::vector<std::string>> read_list(const opmux_str_list& list, const char* what);

Result<Policy> read_policy(const opmux_policy* policy);

}  // namespace opmux::runtime
