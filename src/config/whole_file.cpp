#include "config/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/descriptor.hpp"

namespace opmux::config {
namespace {

bool write_whole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return ::fsync(descriptor) == 0;
}

}  // namespace

bool replace_file(const std::string& path, std::string_view text, unsigned mode) {
  std::string aside = path + ".XXXXXX";
  const base::Descriptor file(::mkostemp(aside.data(), O_CLOEXEC));
  if (!file) return false;
  const bool written = ::fchmod(file.get(), mode) == 0 && write_whole(file.get(), text) &&
                       std::rename(aside.c_str(), path.c_str()) == 0;
  if (!written) {
    const int why = errno;
    ::unlink(aside.c_str());
    errno = why;
  }
  return written;
}

}  // namespace opmux::config
