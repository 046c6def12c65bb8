#include "health/quarantine_store.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/file_lock.hpp"
#include "base/store_folder.hpp"
#include "base/text.hpp"
#include "base/whole_file.hpp"

namespace opmux::health {
namespace {

constexpr int kLockWait = 2000;          // milliseconds
constexpr size_t kMostBytes = 16 << 20;  // size limit of the file

Status cannot(std::string_view what, const std::string& path, std::string_view why) {
  return {Code::unavailable, "quarantine.file", base::concat(what, " ", path, ": ", why)};
}

}  // namespace

Result<QuarantineBook> QuarantineStore::read() const {
  struct stat found{};
  if (::lstat(path().c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return QuarantineBook{};
    return cannot("cannot read", path(), std::strerror(errno));
  }
  if (found.st_uid != ::geteuid()) {
    return cannot("cannot use", path(), "it is not owned by the current user");
  }
  const auto text = base::read_whole(path(), kMostBytes);
  if (!text) return cannot("cannot use", path(), text.error().message());
  QuarantineBook book;
  if (book.parse(*text)) return book;
  return Status(Code::unsupported, "quarantine.version",
                base::concat(path(), " does not begin with '", QuarantineBook::kTitle,
                             "': it is damaged or has another version"));
}

Status QuarantineStore::change(QuarantineBook& book,
                               const std::function<bool(QuarantineBook&)>& edit) const {
  book = {};
  const Status folder = folder_.empty()
                            ? cannot("cannot keep", "quarantines", "no state folder is set")
                            : base::make_private_folder(folder_);
  const base::FileLock lock(folder.ok() ? path() + ".lock" : "", kLockWait);
  const int why = errno;
  auto known = read();
  if (known) book = std::move(*known);
  if (!edit(book)) return known ? Status() : known.error();
  if (!folder.ok()) return folder;
  if (!lock) return cannot("cannot lock", path(), std::strerror(why));
  if (!known) return known.error();
  if (!base::replace_file(path(), book.text(), 0600)) {
    return cannot("cannot write", path(), std::strerror(errno));
  }
  return {};
}

}  // namespace opmux::health
