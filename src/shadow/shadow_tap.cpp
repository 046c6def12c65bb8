#include "shadow/shadow_tap.hpp"

#include <new>
#include <optional>
#include <utility>

#include "dispatch/call/thread_block.hpp"
#include "schema/facts.hpp"

namespace opmux::shadow {
namespace {

std::optional<ShadowSkip> obstacle(const registry::ImplementationRecord& implementation,
                                   const opmux_call& call) {
  if (implementation.backend->history() != nullptr) return ShadowSkip::stream;
  if (implementation.backend->device() != nullptr) return ShadowSkip::device;
  const dispatch::ThreadBlock& block = *dispatch::thread_block;
  if ((block.context & schema::kCapturing) != 0) return ShadowSkip::capturing;
  if (block.depth() > 1) return ShadowSkip::nested;
  switch (verify::CallCopy::obstacle(call)) {
    case verify::NoCopy::device: return ShadowSkip::device;
    case verify::NoCopy::arguments: return ShadowSkip::arguments;
    case verify::NoCopy::none: break;
  }
  return {};
}

}  // namespace

std::string_view name_of(ShadowSkip reason) noexcept {
  switch (reason) {
    case ShadowSkip::memory: return "memory";
    case ShadowSkip::size: return "size";
    case ShadowSkip::busy: return "busy";
    case ShadowSkip::device: return "device";
    case ShadowSkip::stream: return "stream";
    case ShadowSkip::transformed: return "transformed";
    case ShadowSkip::nested: return "nested";
    case ShadowSkip::capturing: return "capturing";
    case ShadowSkip::arguments: return "arguments";
    case ShadowSkip::opaque: return "opaque";
    case ShadowSkip::reference: break;
  }
  return "reference";
}

ShadowTap::ShadowTap(ShadowSite& site, registry::ImplementationPtr implementation,
                     std::shared_ptr<ShadowCounts> counts)
    : CallTap({&ShadowTap::run, this}),
      site_(site),
      implementation_(std::move(implementation)),
      counts_(std::move(counts)),
      sampler_(implementation_->number) {}

int32_t ShadowTap::run(void* self, const opmux_call* call) {
  ShadowTap& tap = *static_cast<ShadowTap*>(static_cast<CallTap*>(self));
  if (tap.sampler_.due()) [[unlikely]]
    return tap.run_picked(*call);
  const registry::RunEntry& own = tap.implementation_->run_entry();
  return own.run(own.user_data, call);
}

bool ShadowTap::picked() {
  const uint32_t every = site_.every.load(std::memory_order_relaxed);
  sampler_.pick_next(shadow_interval(every, counts_->agreed.load(std::memory_order_relaxed),
                                     counts_->was_wrong.load(std::memory_order_relaxed)));
  return every != 0;
}

std::unique_ptr<ShadowSample> ShadowTap::copy(const opmux_call& call) {
  if (const auto reason = obstacle(*implementation_, call)) {
    counts_->skip(*reason);
    return nullptr;
  }
  const size_t bytes = verify::CallCopy::bytes_of(call);
  const size_t limit = site_.memory_limit.load(std::memory_order_relaxed);
  if (bytes > most_bytes_of_call(limit)) {
    counts_->skip(ShadowSkip::size);
    return nullptr;
  }
  if (const auto reason = site_.queue.take_room(implementation_->number, bytes, limit)) {
    counts_->skip(*reason);
    return nullptr;
  }
  try {
    return std::make_unique<ShadowSample>(implementation_->op, implementation_->number, counts_,
                                          verify::CallCopy(call));
  } catch (const std::bad_alloc&) {
    site_.queue.give_back(implementation_->number, bytes);
    counts_->skip(ShadowSkip::memory);
    return nullptr;
  }
}

int32_t ShadowTap::run_picked(const opmux_call& call) {
  const registry::RunEntry& own = implementation_->run_entry();
  std::unique_ptr<ShadowSample> sample = picked() ? copy(call) : nullptr;
  const uint64_t started = sample == nullptr ? 0 : site_.clock.now_ns();
  const int32_t outcome = own.run(own.user_data, &call);
  if (sample == nullptr) return outcome;
  sample->took_ns = site_.clock.now_ns() - started;
  if (outcome != OPMUX_OK) {
    site_.queue.give_back(implementation_->number, sample->call.bytes());
    return outcome;
  }
  sample->call.take_outputs(call);
  sample->ended_ns = site_.clock.now_ns();
  if (site_.queue.push(std::move(sample))) site_.consumer.wake();
  return outcome;
}

void ShadowTap::pass_transformed() noexcept {
  if (sampler_.due() && picked()) counts_->skip(ShadowSkip::transformed);
}

void ShadowTap::pass_opaque(const schema::Signature& signature, dispatch::OpaqueRunner& runner) {
  if (sampler_.due() && picked())
    site_.consumer.look_at_opaque(*implementation_, *counts_, signature, runner);
}

}  // namespace opmux::shadow
