#include "processor.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include "rounds.hpp"

namespace opmux::bench {
namespace {

constexpr int kSteps = 100'000;

/// The value of the first line "key : value" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    const size_t end_of_key = line.find_last_not_of(" \t", colon - 1);
    if (colon == std::string::npos || end_of_key + 1 != key.size()) continue;
    return colon + 2 < line.size() ? line.substr(colon + 2) : "";
  }
  return "unknown";
}

double nanoseconds_per_step(void (*run)()) {
  double best = 1e18;
  for (int round = 0; round < 9; ++round) {
    const double start = thread_ns();
    run();
    best = std::min(best, (thread_ns() - start) / kSteps);
  }
  return best;
}

void add() {
  uint64_t value = 1;
  for (int i = 0; i < kSteps; i += 4) {
    asm volatile("add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0" : "+r"(value));
  }
}

void store_and_load() {
  uint64_t value = 1, slot = 0;
  for (int i = 0; i < kSteps; i += 4) {
    asm volatile(
        "mov %0, %1\n\tmov %1, %0\n\tmov %0, %1\n\tmov %1, %0\n\t"
        "mov %0, %1\n\tmov %1, %0\n\tmov %0, %1\n\tmov %1, %0"
        : "+r"(value), "+m"(slot));
  }
}

}  // namespace

std::string processor_name() {
  const std::string flags = " " + cpuinfo("flags") + " ";
  std::string extensions;
  for (const char* name :
       {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16"}) {
    if (flags.find(" " + std::string(name) + " ") == std::string::npos) continue;
    extensions += (extensions.empty() ? "" : " ") + std::string(name);
  }
  return cpuinfo("model name") + " (family " + cpuinfo("cpu family") + ", model " +
         cpuinfo("model") + "; " + extensions + ")";
}

double store_forwarding_latency() {
  static const double latency = nanoseconds_per_step(store_and_load) / nanoseconds_per_step(add);
  return latency;
}

double limit_by_forwarding(double free, double costly) {
  return store_forwarding_latency() < 1.5 ? free : costly;
}

}  // namespace opmux::bench
