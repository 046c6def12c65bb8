#include "tune/bundle_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "tune/bundle_format.hpp"

namespace opmux::tune {
namespace {

/// Reads exactly these bytes; false with errno set, or with errno 0 if the file is shorter.
bool read_at(const base::Descriptor& file, uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t count = pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = 0;
    if (count <= 0) return false;
    offset += static_cast<uint64_t>(count);
    into = into.subspan(static_cast<size_t>(count));
  }
  return true;
}

std::string why_not_read() { return errno == 0 ? "it is truncated" : std::strerror(errno); }

Status refused(std::string_view why) {
  return {Code::invalid_argument, "tune.bundle", base::concat("the tuning bundle ", why)};
}

}  // namespace

Result<BundleFile> BundleFile::open(const std::string& path) {
  base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about{};
  if (!file || fstat(file.get(), &about) != 0)
    return refused(base::concat("cannot be opened: ", std::strerror(errno)));
  if (!S_ISREG(about.st_mode)) return refused("is not a regular file");
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size > kMostBytes) return refused(base::concat("is larger than ", kMostBytes >> 20, " MiB"));
  std::vector<std::byte> start(std::min<uint64_t>(size, format::kMostHeaderBytes));
  if (!read_at(file, 0, start)) return refused(base::concat("cannot be read: ", why_not_read()));
  Result<Bundle> bundle = Bundle::open_header(start, size);
  if (!bundle) return bundle.error();
  return BundleFile(std::move(file), std::move(*bundle));
}

bool BundleFile::trusted() const { return base::is_own(file_) || base::belongs_to(file_, 0); }

Result<std::vector<TuningRow>> BundleFile::rows(const Bundle::Section& section) const {
  std::vector<std::byte> bytes(section.size);
  if (!read_at(file_, section.offset, bytes)) {
    return Status(Code::invalid_argument, "tune.section",
                  base::concat("the rows of ", section.op,
                               " in the tuning bundle cannot be read: ", why_not_read()));
  }
  return Bundle::rows(section, bytes);
}

}  // namespace opmux::tune
