#include "runtime/shadow_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/process.hpp"

namespace opmux::runtime {

template <class Use>
auto ShadowQueue::with(Use&& use) {
  return state_.with([&](State& state) {
    if (state.process != base::process_number()) {
      state.samples.clear();
      state.taken = 0;
      state.process = base::process_number();
    }
    return use(state);
  });
}

bool ShadowQueue::take_room(size_t bytes, size_t limit) {
  return with([&](State& state) {
    if (bytes > limit || state.taken > limit - bytes) return false;
    state.taken += bytes;
    return true;
  });
}

void ShadowQueue::give_back(size_t bytes) {
  with([&](State& state) { state.taken -= std::min(state.taken, bytes); });
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
      state.taken -= std::min(state.taken, sample->call.bytes());
    forgotten.swap(state.samples);
  });
}

size_t ShadowQueue::waiting() {
  return with([](State& state) { return state.samples.size(); });
}

}  // namespace opmux::runtime
