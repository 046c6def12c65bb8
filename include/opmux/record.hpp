#pragma once

#include <cstdint>
#include <string>

namespace opmux {

/// Calls that went wrong are written to files that `opmux replay` makes them from again: one file
/// for each implementation, class of calls and reason. See docs/replay.md.
struct RecordOptions {
  /// Where files go; made for this user alone if it is not there. Empty: OPMUX_RECORD says so, or
  /// nothing is recorded. What cannot be written is counted and told once; calls go on as without.
  std::string folder = {};
  /// Also keep the elements of the tensors that were read, not only shapes and digests.
  bool inputs = false;
  uint32_t max_files = 64;                  ///< in the folder; later ones are counted, not written
  uint64_t max_bytes = uint64_t{16} << 20;  ///< of elements that one file has, at most 32 MB
};

/// What became of the calls that went wrong since the runtime was made.
struct RecordState {
  std::string folder;  ///< empty: nothing is recorded
  bool inputs = false;
  uint64_t written = 0;   ///< files
  uint64_t known = 0;     ///< calls like one that has a file already
  uint64_t left_out = 0;  ///< calls that had no room in the folder, or lists of tensors
  uint64_t failed = 0;    ///< files that could not be written
  std::string problem;    ///< why, the last time
};

}  // namespace opmux
