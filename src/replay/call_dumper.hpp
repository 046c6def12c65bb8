#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/locks.hpp"
#include "dispatch/call/call_frame.hpp"
#include "replay/dump_filter.hpp"
#include "replay/recorder.hpp"

namespace opmux::replay {

/// Writes the calls that RecordOptions::dump asks for, with inputs and results, to the folder of
/// the recorder. It wraps the taps of the shadow check, so that a runtime without a dump runs no
/// code of it. Thread-safe.
class CallDumper final : public dispatch::TapView {
 public:
  /// The recorder and the other taps must outlive it.
  CallDumper(CallRecorder& recorder, const dispatch::TapView& others, DumpFilter filter);

  std::shared_ptr<dispatch::CallTap> tap_of(
      const registry::OperatorRecord& op,
      const registry::ImplementationPtr& implementation) const override;
  uint64_t version() const override { return others_.version(); }

  /// The layer and the step of a call that is to be dumped, and room for its file.
  struct Turn {
    std::string layer;
    uint64_t step = 0;
    bool due = false;
  };
  /// Counts a call of an operator and a tag.
  Turn enter(const std::string& op, uint32_t tag) const;
  /// Takes the count back, because the implementation did not complete the call.
  void leave(const std::string& op, uint32_t tag) const;
  CallRecorder& recorder() const { return recorder_; }

 private:
  CallRecorder& recorder_;
  const dispatch::TapView& others_;
  const DumpFilter filter_;
  /// The calls so far, by operator and tag: a layer runs once in each step.
  mutable base::ForkGuarded<std::map<std::pair<std::string, uint32_t>, uint64_t>> steps_;
};

}  // namespace opmux::replay
