#include "shadow/shadow_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/system/process.hpp"

namespace opmux::shadow {

template <class Use>
auto ShadowQueue::with(Use&& use) {
  return state_.with([&](State& state) {
    if (state.process != base::process_number()) {
      state.samples.clear();
      state.taken = 0;
      state.calls.clear();
      state.process = base::process_number();
    }
    return use(state);
  });
}

void ShadowQueue::State::give_back(uint32_t implementation, size_t bytes) {
  taken -= std::min(taken, bytes);
  const auto found = calls.find(implementation);
  if (found != calls.end() && --found->second == 0) calls.erase(found);
}

std::optional<ShadowSkip> ShadowQueue::take_room(uint32_t implementation, size_t bytes,
                                                 size_t limit) {
  return with([&](State& state) -> std::optional<ShadowSkip> {
    if (bytes > limit || state.taken > limit - bytes) return ShadowSkip::memory;
    uint32_t& calls = state.calls[implementation];
    if (calls == kMostOfOne) return ShadowSkip::busy;
    ++calls;
    state.taken += bytes;
    return {};
  });
}

void ShadowQueue::give_back(uint32_t implementation, size_t bytes) {
  with([&](State& state) { state.give_back(implementation, bytes); });
}

bool ShadowQueue::push(std::unique_ptr<ShadowSample> sample) {
  return with([&](State& state) {
    state.samples.push_back(std::move(sample));
    return state.samples.size() == 1;
  });
}

std::unique_ptr<ShadowSample> ShadowQueue::pop() {
  return with([](State& state) -> std::unique_ptr<ShadowSample> {
    if (state.samples.empty()) return nullptr;
    auto first = std::move(state.samples.front());
    state.samples.pop_front();
    return first;
  });
}

void ShadowQueue::clear() {
  std::deque<std::unique_ptr<ShadowSample>> forgotten;
  with([&](State& state) {
    for (const auto& sample : state.samples)
      state.give_back(sample->implementation, sample->call.bytes());
    forgotten.swap(state.samples);
  });
}

size_t ShadowQueue::waiting() {
  return with([](State& state) { return state.samples.size(); });
}

}  // namespace opmux::shadow
