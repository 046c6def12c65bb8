#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/status.hpp>

/// Replay of recorded calls: runs a call again from its file and compares the result with the
/// reference. RecordOptions makes such files; docs/replay.md describes them.
///
///   opmux::Result<opmux::ReplayReport> report =
///       runtime.replay().run("calls/5b1e.opmux-replay", {.minimize = true});
///   if (!report) std::cerr << report.error().to_string() << "\n";
///   if (report && report->verdict() != opmux::ReplayVerdict::agrees) {
///     std::cout << report->to_string();
///   }
namespace opmux {

namespace runtime {
class Core;
}

/// Options of ReplayControl::run().
struct ReplayOptions {
  /// Ids of the implementations to run. Empty: the one that was recorded.
  std::vector<std::string> implementations = {};
  /// Search for smaller dimensions with which the first implementation still fails; at most 1000
  /// calls.
  bool minimize = false;
};

/// Result of replaying a call with one implementation.
enum class ReplayVerdict : uint8_t {
  agrees,   ///< All elements are within tolerance of the reference.
  differs,  ///< An element is outside of it.
  fails,    ///< The implementation ended with an outcome other than ok.
  cannot,   ///< It could not run: not present, denied, refused, not comparable.
};

/// "agrees", "differs", "fails", "cannot"; static lifetime.
OPMUX_API std::string_view name_of(ReplayVerdict verdict) noexcept;

/// The first element outside of the tolerance.
struct ReplayDifference {
  std::string argument;        ///< Output: "y".
  std::vector<int64_t> index;  ///< One number for each dimension.
  double got = 0;              ///< Value of the implementation.
  double expected = 0;         ///< Value of the reference.
  double allowed = 0;          ///< Distance from `expected` that is allowed.
};

/// Result of one implementation.
struct ReplayedImplementation {
  std::string id;
  ReplayVerdict verdict = ReplayVerdict::cannot;
  std::string text;                                 ///< One sentence for people.
  std::optional<ReplayDifference> difference = {};  ///< Set if the verdict is `differs`.
};

/// Result of ReplayControl::run(). A plain value.
struct OPMUX_API ReplayReport {
  std::string op;
  std::string recorded;   ///< Implementation that ran when the call was recorded.
  std::string cause;      ///< "failed", "diverged" or "dumped".
  std::string reason;     ///< Stable: "call.failed", "shadow.mismatch", "record.dump".
  std::string says;       ///< Message of the implementation or the check at that time.
  std::string reference;  ///< Id of the reference; empty if the operator has none here.
  std::string arguments;  ///< As `opmux explain` takes them: "x=f32[12,999] scale=1".
  /// Differences to the recorded situation: another build, another CPU.
  std::vector<std::string> notes;
  bool other_values = false;  ///< Elements that are not in the file were generated.
  /// In the order of ReplayOptions::implementations.
  std::vector<ReplayedImplementation> implementations;
  /// After minimizing: the smaller call as the bytes of a file, its arguments, and the number of
  /// calls tried. Empty if not requested, or if the call did not fail again.
  std::string smaller;
  std::string smaller_arguments;
  uint64_t tried = 0;

  /// The worst verdict: `fails`, then `differs`, then `cannot`, then `agrees`.
  ReplayVerdict verdict() const noexcept;
  /// Several lines, as `opmux replay` prints them.
  std::string to_string() const;
};

/// Recording of failed calls. A call that ends with `failed`, or whose result the shadow check
/// finds wrong, is written to a file that ReplayControl::run() and `opmux replay` can run again:
/// one file for each implementation, class of calls and reason. See docs/replay.md.
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
  /// Calls to write although nothing is wrong with them, with their results: "op:layer:step", such
  /// as "rms_norm:layer.3:5-15". Operators and layers are patterns separated by commas; the layer
  /// is the tag of the call; steps count the calls of an operator and a tag from 0. A missing part
  /// fits everything. Empty: OPMUX_DUMP; without either none. Needs a folder.
  std::string dump = {};
};

/// Counters of recorded calls since the runtime was created. Made by ReplayControl::recordings().
struct RecordState {
  std::string folder;  ///< Empty: nothing is recorded.
  bool inputs = false;
  uint64_t written = 0;   ///< Files written.
  uint64_t known = 0;     ///< Calls of a kind that already has a file.
  uint64_t left_out = 0;  ///< Calls without room in the folder, or that cannot be copied.
  uint64_t failed = 0;    ///< Files that could not be written.
  std::string problem;    ///< Cause of the last such failure.
};

/// Recorded calls of a runtime. Made by Runtime::replay().
///
///   const opmux::RecordState recorded = runtime.replay().recordings();
///   std::cout << recorded.written << " calls in " << recorded.folder << "\n";
///
/// Refers to the runtime, which must outlive it. Cheap to copy, safe from any thread.
class ReplayControl {
 public:
  /// Runs a recorded call again and compares it with the reference; see ReplayReport.
  /// Kernels run in this process, as in any call: one that crashes ends the process. An
  /// implementation that is wrong or cannot run is a verdict in the report, not a failure.
  ///
  /// Fails with "replay.file" if the file cannot be read or is not a recording, `not_found` if
  /// there is no such operator, `unsupported` if the call does not fit its schema here
  /// ("replay.schema") or used tensors on a device ("replay.device"), `resource` ("replay.size") if
  /// it is too large.
  OPMUX_API Result<ReplayReport> run(const std::string& path, const ReplayOptions& options = {});
  /// Folder and counters of recorded calls.
  OPMUX_API RecordState recordings() const;

  /// For Runtime::replay().
  explicit ReplayControl(runtime::Core& core) noexcept : core_(&core) {}

 private:
  runtime::Core* core_;
};

}  // namespace opmux
