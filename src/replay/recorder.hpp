#pragma once

#include <atomic>
#include <set>
#include <string>

#include <opmux/replay.hpp>
#include <opmux/status.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "dispatch/call/call_frame.hpp"
#include "policy/policy_source.hpp"
#include "registry/publication.hpp"
#include "replay/capture.hpp"
#include "replay/recording.hpp"
#include "replay/recording_file.hpp"
#include "verify/expected.hpp"

namespace opmux::replay {

/// Fills in cause, element and arguments of a call whose result was wrong. The elements are those
/// before the call, also for tensors that it wrote to.
void describe_divergence(const verify::Divergence& divergence, const CaptureRules& rules,
                         Recording& recording);

/// A call that RecordOptions::dump asks for, after it ended well.
struct DumpedCall {
  const registry::ImplementationRecord& implementation;
  const schema::Schema& schema;
  const verify::CallCopy& call;
  std::string_view layer;
  uint64_t step = 0;
  uint32_t ambient = 0;
  int32_t max_threads = 0;
};

/// Writes failed and diverging calls to the recordings folder of a runtime, on the thread that
/// observed them. Each combination of implementation, class and reason is recorded once.
/// Thread-safe.
class CallRecorder final : public dispatch::FailureObserver, public verify::DivergenceObserver {
 public:
  /// If the folder in `options` is empty, nothing is recorded. The others must outlive the
  /// recorder.
  CallRecorder(base::EventLog& log, const registry::SnapshotSource& registry,
               const policy::PolicySource& policies, const RecordOptions& options);

  bool on() const { return !options_.folder.empty(); }
  void note(const dispatch::FailedCall& call) override;
  /// Records a call whose result was wrong.
  void saw(const verify::Divergence& divergence) override;
  RecordState state() const;

  /// Records a call that ended well, with its results.
  void keep(const DumpedCall& call);
  /// Counts a call that cannot be recorded.
  void leave_out() { left_out_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether keep() can write more: false once the folder was full.
  bool has_room() const { return has_room_.load(std::memory_order_relaxed); }

 private:
  enum class Turn : uint8_t { first, again, crowded };
  Turn take_turn(const std::string& key);
  /// Whether the key is new; counts keys that are not.
  bool is_first(const std::string& key);
  CaptureRules rules(bool spoilt) const;
  Recording describe(const registry::ImplementationRecord& implementation,
                     const schema::Schema& schema, std::string call_class) const;
  void write(const std::string& key, const Recording& recording);
  void write_file(const std::string& name, const Recording& recording);
  void log_failure(const Status& why);

  base::EventLog& log_;
  const registry::SnapshotSource& registry_;
  const policy::PolicySource& policies_;
  RecordOptions options_;
  RecordFolder folder_;
  base::ForkGuarded<std::set<std::string>> seen_;
  std::atomic<bool> has_room_{true};
  std::atomic<uint64_t> written_{0}, known_{0}, left_out_{0}, failed_{0};
  base::Published<std::string> problem_;
};

/// The effective options: those of the program, else of the environment, with an absolute folder.
/// Fails with `unsupported`, "record.unsupported", if the library was built without SHA-256, and
/// with `invalid_argument`, "record.dump", for a dump without a folder or of another form.
Result<RecordOptions> record_options(RecordOptions options, const std::string& environment_folder,
                                     bool environment_inputs, const std::string& environment_dump);

}  // namespace opmux::replay
