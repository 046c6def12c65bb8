#pragma once

#include <memory>
#include <string>

#include "base/system/clock.hpp"
#include "dispatch/call/call_frame.hpp"
#include "shadow/shadow_queue.hpp"
#include "shadow/shadow_sampler.hpp"

namespace opmux::shadow {

/// The thread that compares samples.
class SampleConsumer {
 public:
  virtual ~SampleConsumer() = default;
  /// Called when a sample is pushed to the empty queue.
  virtual void wake() = 0;
  /// Compares what a function returned with what the body returned. Runs the body.
  virtual void look_at_opaque(const registry::ImplementationRecord& of, ShadowCounts& counts,
                              const schema::Signature& signature,
                              dispatch::OpaqueRunner& runner) = 0;
};

/// State that all taps of a ShadowChecker share; outlives them.
struct ShadowSite {
  ShadowSite(const base::Clock& its_clock, SampleConsumer& its_consumer)
      : clock(its_clock), consumer(its_consumer) {}

  ShadowQueue queue;
  std::atomic<uint32_t> every{0};
  std::atomic<size_t> memory_limit{0};
  const base::Clock& clock;
  SampleConsumer& consumer;
};

/// Copies the arguments of sampled calls of one implementation before and after they run, on the
/// caller's thread. The comparison runs elsewhere. Thread-safe.
class ShadowTap final : public dispatch::CallTap {
 public:
  ShadowTap(ShadowSite& site, registry::ImplementationPtr implementation,
            std::shared_ptr<ShadowCounts> counts);

  void pass_transformed() noexcept override;
  void pass_opaque(const schema::Signature& signature, dispatch::OpaqueRunner& runner) override;

 private:
  static int32_t run(void* self, const opmux_call* call);
  int32_t run_picked(const opmux_call& call);
  std::unique_ptr<ShadowSample> copy(const opmux_call& call);
  /// Whether the due call is to be copied; also selects the next one.
  bool picked();

  ShadowSite& site_;
  registry::ImplementationPtr implementation_;
  std::shared_ptr<ShadowCounts> counts_;
  ShadowSampler sampler_;
};

}  // namespace opmux::shadow
