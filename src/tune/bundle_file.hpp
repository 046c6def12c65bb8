#pragma once

#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "base/system/files.hpp"
#include "tune/bundle.hpp"

namespace opmux::tune {

/// A bundle on disk. It stays open, so that a bundle that is replaced by renaming keeps its rows,
/// and its bytes are read instead of mapped, because a file that is truncated while it is mapped
/// ends the process.
class BundleFile {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;

  /// Opens a regular file and checks its header. Fails with "tune.bundle" or "tune.unsupported".
  static Result<BundleFile> open(const std::string& path);

  const Bundle& bundle() const { return bundle_; }
  /// False if another user than this one and root owns the file or can write to it.
  bool trusted() const;
  /// Reads and checks the rows of a section. Fails with "tune.section".
  Result<std::vector<TuningRow>> rows(const Bundle::Section& section) const;

 private:
  BundleFile(base::Descriptor file, Bundle bundle)
      : file_(std::move(file)), bundle_(std::move(bundle)) {}

  base::Descriptor file_;
  Bundle bundle_;
};

}  // namespace opmux::tune
