#include "registry/implementation/architecture.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace opmux::registry {
namespace {

/// Removes and returns the first number of a dotted text; 0 if the text is empty. A number that
/// does not fit counts as the largest.
uint64_t take_number(std::string_view& dotted) {
  const std::string_view digits = dotted.substr(0, dotted.find('.'));
  dotted.remove_prefix(std::min(digits.size() + 1, dotted.size()));
  uint64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return read.ec == std::errc::result_out_of_range ? UINT64_MAX : number;
}

std::string range_text(const ArchRange& range) {
  if (range.highest.empty()) return "at least " + range.lowest;
  if (range.lowest.empty()) return "at most " + range.highest;
  return base::concat(range.lowest, " to ", range.highest);
}

}  // namespace

bool dotted_numbers(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool inside = i > 0 && i + 1 < text.size();
    if (!digit(text[i]) && !(text[i] == '.' && inside && digit(text[i - 1]))) return false;
  }
  return true;
}

int compare_dotted(std::string_view left, std::string_view right) {
  while (!left.empty() || !right.empty()) {
    const uint64_t of_left = take_number(left), of_right = take_number(right);
    if (of_left != of_right) return of_left < of_right ? -1 : 1;
  }
  return 0;
}

void StatedArchitectures::set(Device device, std::string_view architecture) {
  stated_.with([&](auto& stated) {
    stated.insert_or_assign({device.type, device.id}, std::string(architecture));
  });
}

void StatedArchitectures::add(const std::shared_ptr<const Backend>& backend) {
  backends_.with([&](auto& all) {
    std::erase_if(all, [](const auto& each) { return each.expired(); });
    all.push_back(backend);
  });
}

/// Asks without holding the lock, because the function of a backend may take long or call opmux.
std::string StatedArchitectures::of_backends(Device device) const {
  const auto all = backends_.with([](const auto& known) { return known; });
  for (const std::weak_ptr<const Backend>& each : all) {
    const std::shared_ptr<const Backend> backend = each.lock();
    if (backend == nullptr || backend->device_type() != device.type) continue;
    if (!backend->enabled() || !backend->available()) continue;
    if (std::string architecture = backend->architecture(device.id); !architecture.empty())
      return architecture;
  }
  return {};
}

std::string StatedArchitectures::of(Device device) const {
  std::string architecture = stated_.with([&](const auto& stated) {
    const auto at = stated.find({device.type, device.id});
    return at == stated.end() ? std::string() : at->second;
  });
  return architecture.empty() ? of_backends(device) : architecture;
}

std::string architecture_of(const Backend& backend, Device device) {
  std::string own = device.type == backend.device_type() ? backend.architecture(device.id) : "";
  if (!own.empty() || backend.stated_architectures() == nullptr) return own;
  return backend.stated_architectures()->of(device);
}

std::string architecture_refusal(const ImplementationRecord& implementation, Device device) {
  const ArchRange& range = implementation.capability.arch;
  if (!range.limited()) return {};
  const std::string is = architecture_of(*implementation.backend, device);
  const std::string must =
      base::concat("the architecture of ", name_of(device), " must be ", range_text(range));
  if (is.empty()) return must + ", and neither its backend nor the program states one";
  if (!dotted_numbers(is)) return base::concat(must, ", is ", is, ", which is not a number");
  const bool inside = (range.lowest.empty() || compare_dotted(is, range.lowest) >= 0) &&
                      (range.highest.empty() || compare_dotted(is, range.highest) <= 0);
  return inside ? std::string() : base::concat(must, ", is ", is);
}

std::string architecture_refusal(const ImplementationRecord& implementation,
                                 const schema::Signature& signature) {
  const ArchRange& range = implementation.capability.arch;
  if (!range.limited()) return {};
  const int64_t fact = range.device ? schema::value_of(signature, *range.device) : schema::kAbsent;
  if (fact == schema::kAbsent) {
    return architecture_refusal(implementation, Device{implementation.capability.device_type, 0});
  }
  return architecture_refusal(
      implementation, {static_cast<int32_t>(fact & 0xffff), static_cast<int32_t>(fact >> 16)});
}

std::string architecture_refusal(const ImplementationRecord& implementation) {
  if (!implementation.capability.arch.limited()) return {};
  const Backend& backend = *implementation.backend;
  const DeviceAccess* const access = backend.device();
  // Without a device table the number of devices is not known: those count that have an
  // architecture, up to the first one without.
  constexpr int32_t kMost = 64;
  const int32_t type = implementation.capability.device_type;
  const int32_t count = access == nullptr ? kMost : access->functions.count(access->user_data);
  std::string first = architecture_refusal(implementation, {type, 0});
  for (int32_t id = 1; id < count && !first.empty(); ++id) {
    if (access == nullptr && architecture_of(backend, {type, id}).empty()) break;
    if (architecture_refusal(implementation, {type, id}).empty()) return {};
  }
  return first;
}

}  // namespace opmux::registry
