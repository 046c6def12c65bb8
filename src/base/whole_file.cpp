#include "base/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace opmux::base {
namespace {

Status cannot_read(const std::string& path, int why) {
  return {Code::failed, "store.read",
          concat("cannot read ", path, ": ", std::generic_category().message(why))};
}

}  // namespace

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

bool replace_file(const std::string& path, std::string_view text, unsigned mode) {
  std::string aside = path + ".XXXXXX";
  const Descriptor file(::mkostemp(aside.data(), O_CLOEXEC));
  if (!file) return false;
  const bool written = ::fchmod(file.get(), mode) == 0 && write_all(file.get(), text) &&
                       ::fsync(file.get()) == 0 && std::rename(aside.c_str(), path.c_str()) == 0;
  if (!written) {
    const int why = errno;
    ::unlink(aside.c_str());
    errno = why;
  }
  return written;
}

Result<std::string> read_whole(const std::string& path, size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) return cannot_read(path, errno);
  if (!S_ISREG(facts.st_mode) || static_cast<size_t>(facts.st_size) > most) {
    return cannot_read(path, EFBIG);
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t count =
        ::pread(file.get(), text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return cannot_read(path, count < 0 ? errno : EIO);
    have += static_cast<size_t>(count);
  }
  return text;
}

}  // namespace opmux::base
