#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Architectures of devices for backends that state none: those that the program states, or other
/// backends of the device. Thread-safe.
class StatedArchitectures {
 public:
  void set(Device device, std::string_view architecture);
  /// Adds a backend that states the architectures of its devices.
  void add(const std::shared_ptr<const Backend>& backend);
  /// Empty if neither the program nor an available backend states one.
  std::string of(Device device) const;

 private:
  std::string of_backends(Device device) const;
  mutable base::ForkGuarded<std::map<std::pair<int32_t, int32_t>, std::string>> stated_;
  mutable base::ForkGuarded<std::vector<std::weak_ptr<const Backend>>> backends_;
};

/// The architecture of a device as the backend states it, otherwise as the program does, otherwise
/// as another backend of that type of device does; empty if none does.
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
