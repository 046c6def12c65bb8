#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <opmux/tensor.hpp>

#include "base/locks.hpp"
#include "registry/record.hpp"

/// Architectures of devices: numbers with dots between them, such as 9.0.
namespace opmux::registry {

/// Whether `text` is empty or numbers with dots between them: "8", "8.6", but not "gfx".
bool dotted_numbers(std::string_view text);

/// Compares dotted numbers, number by number; numbers that are missing at the end count as 0.
/// Negative, 0 or positive, as `left` is less than, equal to or greater than `right`.
int compare_dotted(std::string_view left, std::string_view right);

/// Architectures that the program states for devices whose backends state none. Thread-safe.
class StatedArchitectures {
 public:
  void set(Device device, std::string_view architecture);
  /// Empty if the program stated none.
  std::string of(Device device) const;

 private:
  mutable base::ForkGuarded<std::map<std::pair<int32_t, int32_t>, std::string>> stated_;
};

/// The architecture of a device as its backend states it, otherwise as the program does; empty if
/// neither does.
std::string architecture_of(const Backend& backend, Device device);

/// Why the architecture of the device of this call is outside of the range that the implementation
/// supports; empty if it is inside, or if the implementation gives no range.
std::string architecture_refusal(const ImplementationRecord& implementation,
                                 const schema::Signature& signature);
/// The same for one device.
std::string architecture_refusal(const ImplementationRecord& implementation, Device device);
/// Why no device of the backend has an architecture that the implementation supports; empty if one
/// has. The backend must be available.
std::string architecture_refusal(const ImplementationRecord& implementation);

}  // namespace opmux::registry
