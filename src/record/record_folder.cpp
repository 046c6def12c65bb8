#include "record/record_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/store_folder.hpp"
#include "base/text.hpp"
#include "base/whole_file.hpp"

namespace opmux::record {
namespace {

namespace fs = std::filesystem;

/// Counts the replay files in a folder; stops at `enough`.
size_t count_files(const std::string& folder, size_t enough) {
  size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && count < enough;
       at.increment(error)) {
    if (at->path().native().ends_with(kSuffix)) ++count;
  }
  return count;
}

}  // namespace

std::string RecordFolder::path_of(std::string_view name) const {
  return base::concat(path_, "/", name, kSuffix);
}

Status RecordFolder::write(std::string_view name, std::string_view bytes) const {
  if (const Status made = base::make_private_folder(path_); !made.ok()) {
    return {Code::unavailable, "record.folder", std::string(made.message())};
  }
  const std::string path = path_of(name);
  if (::access(path.c_str(), F_OK) == 0) {
    return {Code::already_exists, "record.known", path + " already exists"};
  }
  if (count_files(path_, most_files_) >= most_files_) {
    return {Code::resource, "record.full",
            base::concat(path_, " has ", most_files_, " replay files, which is the limit")};
  }
  if (base::replace_file(path, bytes, 0600)) return {};
  return {Code::unavailable, "record.write",
          base::concat("cannot write ", path, ": ", std::generic_category().message(errno))};
}

}  // namespace opmux::record
