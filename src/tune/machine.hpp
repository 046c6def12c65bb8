#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/system/machine_facts.hpp"

namespace opmux::tune {

/// The machine that rows were measured on. It has no host name and no path, so that hosts of
/// one kind share their rows.
struct Machine {
  /// Processor, instruction sets, last-level cache and number of processors:
  /// "GenuineIntel 6-85-7 isa=avx,avx2,fma states=e7 llc=36608K cores=2".
  std::string hard;
  std::string soft;  ///< "kernel=6.1.0-13-amd64 microcode=0x5003707"

  auto operator<=>(const Machine&) const = default;
};

/// How far rows of one machine hold on another.
enum class Validity : uint8_t {
  current,  ///< both parts are equal
  aged,     ///< the soft part differs: used, and checked again when the service is idle
  foreign,  ///< the hard part differs: not used
};

Validity validity_of(const Machine& measured, const Machine& here);

Machine describe_machine(const base::MachineFacts& facts);

}  // namespace opmux::tune
