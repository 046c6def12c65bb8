#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>

#include <opmux/record.hpp>
#include <opmux/status.hpp>

#include "base/fork_guarded.hpp"
#include "base/published.hpp"
#include "dispatch/failed_call.hpp"
#include "record/capture.hpp"
#include "record/record_folder.hpp"
#include "record/recording.hpp"
#include "telemetry/event_log.hpp"
#include "verify/divergence.hpp"

namespace opmux::runtime {

/// Writes calls that went wrong into the folder of a runtime's recordings, on the thread that met
/// them: each implementation, class and reason once. Thread-safe.
class CallRecorder final : public verify::Witness {
 public:
  struct Parts {
    telemetry::EventLog* log = nullptr;
    std::function<std::string()> policy_hash;
  };
  /// `options` with an empty folder records nothing.
  CallRecorder(Parts parts, const RecordOptions& options);

  bool on() const { return !options_.folder.empty(); }
  void note(const dispatch::FailedCall& call);
  /// A call whose result was wrong.
  void saw(const verify::Divergence& divergence) override;
  RecordState state() const;

 private:
  enum class Turn : uint8_t { first, again, crowded };
  Turn take_turn(const std::string& key);
  /// Whether it is the first time; counts the others.
  bool is_first(const std::string& key);
  record::CaptureRules rules(bool spoilt) const;
  record::Recording describe(const registry::ImplementationRecord& implementation,
                             const registry::Schema& schema, std::string call_class) const;
  void write(const std::string& key, const record::Recording& recording);
  void tell_failure(const Status& why);

  Parts parts_;
  RecordOptions options_;
  record::RecordFolder folder_;
  base::ForkGuarded<std::set<std::string>> seen_;
  std::atomic<uint64_t> written_{0}, known_{0}, left_out_{0}, failed_{0};
  base::Published<std::string> problem_;
};

/// The options that hold: those of the program or else of the environment, with an absolute folder.
/// Fails with `unsupported`, "record.unsupported", if the library was built without digests.
Result<RecordOptions> record_options(RecordOptions options, const std::string& environment_folder,
                                     bool environment_inputs);

}  // namespace opmux::runtime
