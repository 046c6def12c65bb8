#include <algorithm>
#include <array>
#include <charconv>
#include <list>
#include <optional>
#include <string>

#include <opmux/tensor.hpp>

#include "base/locks.hpp"
#include "base/text.hpp"
#include "schema/dtype.hpp"
#include "schema/schema.hpp"

namespace opmux {
namespace {

struct NamedDevice {
  int32_t type;
  std::string_view name;
};

/// Every type of DLPack, by the name of its DLDeviceType in lower case.
constexpr std::array kDevices{
    NamedDevice{OPMUX_DEVICE_CPU, "cpu"},
    NamedDevice{OPMUX_DEVICE_CUDA, "cuda"},
    NamedDevice{OPMUX_DEVICE_CUDA_HOST, "cuda_host"},
    NamedDevice{OPMUX_DEVICE_OPENCL, "opencl"},
    NamedDevice{OPMUX_DEVICE_VULKAN, "vulkan"},
    NamedDevice{OPMUX_DEVICE_METAL, "metal"},
    NamedDevice{OPMUX_DEVICE_VPI, "vpi"},
    NamedDevice{OPMUX_DEVICE_ROCM, "rocm"},
    NamedDevice{OPMUX_DEVICE_ROCM_HOST, "rocm_host"},
    NamedDevice{OPMUX_DEVICE_EXT_DEV, "ext_dev"},
    NamedDevice{OPMUX_DEVICE_CUDA_MANAGED, "cuda_managed"},
    NamedDevice{OPMUX_DEVICE_ONEAPI, "oneapi"},
    NamedDevice{OPMUX_DEVICE_WEBGPU, "webgpu"},
    NamedDevice{OPMUX_DEVICE_HEXAGON, "hexagon"},
    NamedDevice{OPMUX_DEVICE_MAIA, "maia"},
    NamedDevice{OPMUX_DEVICE_TRN, "trn"},
};

/// Other names of the same types, as torch and its plugins use them. torch exports tensors of
/// plugins such as torch_npu (PrivateUse1) as ext_dev.
constexpr std::array kAliases{
    NamedDevice{OPMUX_DEVICE_ROCM, "hip"},
    NamedDevice{OPMUX_DEVICE_EXT_DEV, "npu"},
    NamedDevice{OPMUX_DEVICE_EXT_DEV, "privateuseone"},
    NamedDevice{OPMUX_DEVICE_ONEAPI, "xpu"},
    NamedDevice{OPMUX_DEVICE_METAL, "mps"},
};

/// A type that a vendor defines. Never removed, so that texts that were written with the name keep
/// their meaning and views of it stay valid.
struct VendorDevice {
  int32_t type;
  std::string name;
};

base::ForkGuarded<std::list<VendorDevice>>& vendor_devices() {
  static constinit base::Lazy<base::ForkGuarded<std::list<VendorDevice>>> all;
  return all.get();
}

/// The vendor's name of a type; empty if it has none.
std::string_view vendor_name_of(int32_t type) {
  return vendor_devices().with([&](const auto& all) -> std::string_view {
    const auto at = std::ranges::find(all, type, &VendorDevice::type);
    return at == all.end() ? std::string_view() : at->name;
  });
}

std::optional<int32_t> vendor_type_of(std::string_view name) {
  return vendor_devices().with([&](const auto& all) -> std::optional<int32_t> {
    const auto at = std::ranges::find(all, name, &VendorDevice::name);
    return at == all.end() ? std::nullopt : std::optional(at->type);
  });
}

std::string_view word_of_device(int32_t type) {
  const auto* const known = std::ranges::find(kDevices, type, &NamedDevice::type);
  return known != kDevices.end() ? known->name : vendor_name_of(type);
}

std::optional<int32_t> type_of_device(std::string_view word) {
  for (const NamedDevice& named : kDevices) {
    if (named.name == word) return named.type;
  }
  for (const NamedDevice& named : kAliases) {
    if (named.name == word) return named.type;
  }
  return vendor_type_of(word);
}

constexpr std::string_view kUnnamed = "device";

/// The whole text as a number from `least` on.
std::optional<int32_t> device_number(std::string_view text, int32_t least) {
  int32_t number = 0;
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto read = std::from_chars(begin, end, number);
  if (read.ec != std::errc() || read.ptr != end || number < least) return std::nullopt;
  return number;
}

Status wrong_name(std::string message) {
  return {Code::invalid_argument, "device.name", std::move(message)};
}

}  // namespace

std::string name_of(Device device) {
  const std::string_view word = word_of_device(device.type);
  if (word.empty()) return base::concat(kUnnamed, device.type, ":", device.id);
  return base::concat(word, ":", device.id);
}

std::optional<Device> parse_device(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view word = text.substr(0, colon);
  const std::optional<int32_t> id =
      colon == text.size() ? 0 : device_number(text.substr(colon + 1), 0);
  if (!id) return std::nullopt;
  if (const auto type = type_of_device(word)) return Device{*type, *id};
  if (!word.starts_with(kUnnamed)) return std::nullopt;
  const auto type = device_number(word.substr(kUnnamed.size()), 1);
  if (!type) return std::nullopt;
  return Device{*type, *id};
}

Status name_device_type(int32_t type, std::string_view name) {
  if (!schema::valid_name(name) || name.starts_with(kUnnamed)) {
    return wrong_name(
        base::concat("'", name, "' is not a name for a device type: ",
                     "[a-z][a-z0-9_]* of at most 64 bytes, not beginning with device"));
  }
  const std::optional<int32_t> meant = type_of_device(name);
  if (meant == type) return {};
  if (meant) {
    return wrong_name(
        base::concat("'", name, "' already names device type ", *meant, ", not ", type));
  }
  if (type < OPMUX_DEVICE_VENDOR || type > OPMUX_DEVICE_LAST) {
    return wrong_name(base::concat("device type ", type, " cannot be named '", name,
                                   "': the types of vendors are ", OPMUX_DEVICE_VENDOR, " to ",
                                   OPMUX_DEVICE_LAST));
  }
  return vendor_devices().with([&](std::list<VendorDevice>& all) -> Status {
    for (const VendorDevice& known : all) {
      if (known.type == type || known.name == name) {
        if (known.type == type && known.name == name) return {};
        return wrong_name(base::concat("device type ", type, " cannot be named '", name,
                                       "': there is ", known.name, " of type ", known.type));
      }
    }
    all.push_back({type, std::string(name)});
    return {};
  });
}

std::vector<schema::Named> schema::named_devices() {
  std::vector<Named> all;
  for (const NamedDevice& named : kDevices) all.push_back({named.name, named.type});
  for (const NamedDevice& named : kAliases) all.push_back({named.name, named.type});
  vendor_devices().with([&](const std::list<VendorDevice>& vendors) {
    for (const VendorDevice& vendor : vendors) all.push_back({vendor.name, vendor.type});
  });
  return all;
}

}  // namespace opmux
