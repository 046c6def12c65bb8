#include "base/system/machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace opmux::base {
namespace {

uint64_t enabled_states() {
#if defined(__x86_64__)
  constexpr unsigned kOsXsave = 1u << 27;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
#else
  return 0;
#endif
}

uint64_t last_level_cache() {
  const long largest = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE));
  return largest > 0 ? static_cast<uint64_t>(largest) : 0;
}

}  // namespace

MachineFacts read_machine_facts() {
  MachineFacts facts;
  std::ifstream file("/proc/cpuinfo");
  std::ostringstream text;
  text << file.rdbuf();
  facts.cpuinfo = std::move(text).str();
  facts.enabled_states = enabled_states();
  facts.last_level_cache = last_level_cache();
  utsname name{};
  if (uname(&name) == 0) facts.kernel = name.release;
  return facts;
}

}  // namespace opmux::base
