#include "base/store_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace opmux::base {
namespace {

Status cannot(std::string_view what, const std::string& path, int why) {
  return {Code::failed, "store.folder",
          concat("cannot ", what, " ", path, ": ", std::generic_category().message(why))};
}

}  // namespace

std::string store_folder(const std::string& state_dir) {
  if (!state_dir.empty()) return state_dir + "/store";
  const char* state = secure_getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/opmux";
  const char* home = secure_getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/opmux";
  return {};
}

std::string run_folder(const std::string& state_dir) {
  if (!state_dir.empty()) return state_dir + "/run";
  const char* run = secure_getenv("XDG_RUNTIME_DIR");
  if (run != nullptr && *run == '/') return std::string(run) + "/opmux";
  return concat("/dev/shm/opmux-", geteuid());
}

Status make_private_folder(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return cannot("make", part, errno);
    }
    if (at == std::string::npos) break;
  }
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat facts{};
  if (!folder || fstat(folder.get(), &facts) != 0) {
    return cannot("open", path, errno);
  }
  if (facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) {
    return {Code::failed, "store.folder",
            path + " must be a folder that belongs to this user and has mode 0700"};
  }
  if (faccessat(folder.get(), ".", W_OK, AT_EACCESS) != 0) {
    return cannot("write to", path, errno);
  }
  return {};
}

}  // namespace opmux::base
