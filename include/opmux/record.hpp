#pragma once

#include <cstdint>
#include <string>

namespace opmux {

/// Recording of failed calls. A call that ends with `failed`, or whose result the shadow check
/// finds wrong, is written to a file that Runtime::replay() and `opmux replay` can run again: one
/// file for each implementation, class of calls and reason. See docs/replay.md.
///
///   opmux::Options options;
///   options.record.folder = "/var/lib/app/calls";
///   options.record.inputs = true;
///   opmux::Result<opmux::Runtime> recorded = opmux::Runtime::create(options);
///
/// Calls that succeed cost nothing. The file is written by the thread whose call failed, before the
/// next candidate runs.
struct RecordOptions {
  /// Destination, created for this user alone if it does not exist. Empty: OPMUX_RECORD; without
  /// either nothing is recorded. Files that cannot be written are counted and logged once; calls
  /// are not affected.
  std::string folder = {};
  /// Also store the elements of input tensors. False: shapes, strides, scalars and SHA-256 digests;
  /// a replay then uses generated values.
  bool inputs = false;
  uint32_t max_files = 64;  ///< Limit for the folder; further calls are counted, not written.
  uint64_t max_bytes = uint64_t{16} << 20;  ///< Limit for the elements in one file, at most 32 MB.
};

/// Counters of recorded calls since the runtime was created. Made by Runtime::recordings().
struct RecordState {
  std::string folder;  ///< Empty: nothing is recorded.
  bool inputs = false;
  uint64_t written = 0;   ///< Files written.
  uint64_t known = 0;     ///< Calls of a kind that already has a file.
  uint64_t left_out = 0;  ///< Calls without room in the folder, or with lists of tensors.
  uint64_t failed = 0;    ///< Files that could not be written.
  std::string problem;    ///< Cause of the last such failure.
};

}  // namespace opmux
