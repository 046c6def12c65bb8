#include "probe/confinement.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/system/files.hpp"
#include "plugin/probe/probe.hpp"
#include "probe/call_filter.hpp"
#include "probe/landlock.hpp"
#include "probe/namespaces.hpp"

#ifdef OPMUX_SANITIZED
/// A search for leaks at the end would trace threads, which is forbidden by then.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace opmux::probe {
namespace {

/// Sets a limit, or keeps a stricter one that the parent has.
bool limit(__rlimit_resource_t what, unsigned long most, unsigned long slack = 0) {
  rlimit both{};
  if (getrlimit(what, &both) != 0) return false;
  both.rlim_max = std::min<rlim_t>(both.rlim_max, most + slack);
  both.rlim_cur = std::min<rlim_t>(both.rlim_max, most);
  return setrlimit(what, &both) == 0;
}

bool set_limits() {
  namespace protocol = plugin::protocol;
  bool set = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, protocol::kLargestFile) &&
             limit(RLIMIT_NOFILE, protocol::kMostFiles) && limit(RLIMIT_MSGQUEUE, 0) &&
             limit(RLIMIT_CPU, protocol::kMostSeconds, 1);
#ifndef OPMUX_SANITIZED  // a sanitizer's shadow memory counts as data
  set = set && limit(RLIMIT_DATA, protocol::kMostData);
#endif
  return set;
}

/// Asks the system to end this process rather than another when memory runs out.
void be_ended_first() {
  const base::Descriptor file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file) (void)base::write_all(file.get(), "1000");
}

}  // namespace

Confined confine(const std::string& folder, std::string_view plugin) {
  be_ended_first();
  const Namespaces namespaces = enter_namespaces(folder, plugin);
  Confined result{false, namespaces.missing};
  // A changed set of capabilities resets the signal, so it is set afterwards.
  const bool limited = drop_capabilities() && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
                       chdir(folder.c_str()) == 0 && set_limits() &&
                       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  if (!limited) return result;
  if (!restrict_files(folder, namespaces.shared_memory)) result.missing.emplace_back("landlock");
  result.done = filter_calls();
  return result;
}

}  // namespace opmux::probe
