#include "tune/machine.hpp"

#include <array>
#include <string_view>

#include "base/line_records.hpp"
#include "base/system/cpu_features.hpp"
#include "base/text.hpp"

namespace opmux::tune {
namespace {

/// The value of the first line "name : value"; empty if there is none.
std::string_view field_of(std::string_view cpuinfo, std::string_view name) {
  while (!cpuinfo.empty()) {
    std::string_view value = base::take_until(cpuinfo, '\n');
    std::string_view key = base::take_until(value, ':');
    key = key.substr(0, key.find_last_not_of(" \t") + 1);
    if (key != name) continue;
    const size_t start = value.find_first_not_of(' ');
    return start == value.npos ? std::string_view() : value.substr(start);
  }
  return {};
}

size_t count_of(std::string_view cpuinfo, std::string_view start) {
  size_t count = 0;
  while (!cpuinfo.empty()) count += base::take_until(cpuinfo, '\n').starts_with(start) ? 1 : 0;
  return count;
}

/// True for an instruction set that kernels are written for. The kernel reports others as well,
/// such as those of virtual machines, which vary without an effect on speed.
bool is_instruction_set(std::string_view feature) {
  constexpr std::array<std::string_view, 5> kFamilies{"avx", "amx", "sse4", "sve", "sme"};
  constexpr std::array<std::string_view, 12> kNames{"ssse3", "fma",  "f16c", "bmi1",
                                                    "bmi2",  "gfni", "vaes", "vpclmulqdq",
                                                    "asimd", "bf16", "i8mm", "fphp"};
  for (const std::string_view family : kFamilies) {
    if (feature.starts_with(family)) return true;
  }
  for (const std::string_view name : kNames) {
    if (feature == name) return true;
  }
  return false;
}

/// "GenuineIntel 6-85-7", or "arm 0x41-0xd40-0x1" where the kernel names an implementer instead.
std::string processor_of(std::string_view cpuinfo) {
  const std::string_view vendor = field_of(cpuinfo, "vendor_id");
  if (vendor.empty()) {
    return base::concat("arm ", field_of(cpuinfo, "CPU implementer"), "-",
                        field_of(cpuinfo, "CPU part"), "-", field_of(cpuinfo, "CPU variant"));
  }
  return base::concat(vendor, " ", field_of(cpuinfo, "cpu family"), "-", field_of(cpuinfo, "model"),
                      "-", field_of(cpuinfo, "stepping"));
}

std::string hexadecimal(uint64_t number) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[number % 16]);
    number /= 16;
  } while (number != 0);
  return digits;
}

}  // namespace

Machine describe_machine(const base::MachineFacts& facts) {
  std::string sets;
  for (const std::string& feature : base::parse_cpu_features(facts.cpuinfo)) {
    if (is_instruction_set(feature)) sets += (sets.empty() ? "" : ",") + feature;
  }
  Machine machine;
  machine.hard = base::concat(
      processor_of(facts.cpuinfo), " isa=", sets, " states=", hexadecimal(facts.enabled_states),
      " llc=", facts.last_level_cache / 1024, "K cores=", count_of(facts.cpuinfo, "processor"));
  machine.soft =
      base::concat("kernel=", facts.kernel, " microcode=", field_of(facts.cpuinfo, "microcode"));
  return machine;
}

Validity validity_of(const Machine& measured, const Machine& here) {
  if (measured.hard != here.hard) return Validity::foreign;
  return measured.soft == here.soft ? Validity::current : Validity::aged;
}

}  // namespace opmux::tune
