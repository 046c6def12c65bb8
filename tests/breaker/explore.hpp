#pragma once

#include <cstring>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

#include "explored_world.hpp"

namespace opmux::test {

/// The events of each thread, in order.
using Script = std::vector<std::vector<Event>>;

/// Explores all interleavings of the steps of a few threads. States seen before are not explored
/// again.
template <class Rules>
class Explorer {
 public:
  struct Found {
    uint64_t states = 0;
    int broken = 0;  ///< number of the violated invariant
    std::string how;
  };

  Explorer(const Script& script, bool is_reference)
      : fibers_(script.size()), script_(script), is_reference_(is_reference) {}

  Found run() {
    Found found;
    std::vector<Path> open{{}};
    while (!open.empty()) {
      Path path = std::move(open.back());
      open.pop_back();
      restart();
      for (const uint8_t thread : path) fibers_.step(thread);
      while (met_.insert(number_of_state()).second) {
        ++found.states;
        if (world().broken() != 0) {
          found.broken = world().broken();
          found.how = describe();
          return found;
        }
        const std::vector<uint8_t> choices = choices_now();
        if (choices.empty()) break;
        for (size_t i = 1; i < choices.size(); ++i) {
          open.push_back(path);
          open.back().push_back(choices[i]);
        }
        path.push_back(choices[0]);
        fibers_.step(choices[0]);
      }
    }
    return found;
  }

 private:
  using World = ExploredWorld<Rules>;
  using Path = std::vector<uint8_t>;  ///< the thread that takes each step

  alignas(64) static inline std::array<std::byte, sizeof(World)> memory_;
  static World& world() { return *std::launder(reinterpret_cast<World*>(memory_.data())); }
  static void mix(uint64_t& number, const std::byte* from, const std::byte* to) {
    for (; from < to; from += 8) {
      uint64_t word = 0;
      std::memcpy(&word, from, 8);
      number = (number ^ word) * 0x9E3779B97F4A7C15;
      number ^= number >> 29;
    }
  }
  static uint64_t guarded_number() {
    uint64_t number = 0;
    world().guarded_parts([&](auto... part) { mix(number, part...); });
    return number;
  }
  static uint64_t shared_number() {
    uint64_t number = 0;
    world().changing_parts([&](auto... part) { mix(number, part...); });
    return number;
  }

  void restart() {
    std::memset(memory_.data(), 0, sizeof(World));
    Fibers::current = &fibers_;
    new (memory_.data()) World(is_reference_);
    progress = {};
    progress.guarded = &guarded_number;
    at_event_ = {};
    body_ = [this](size_t thread) { live(thread); };
    fibers_.restart(body_);
  }

  void live(size_t at) {
    for (const Event event : script_[at]) {
      progress.read[at] = progress.steps[at] = 0;
      world().happen(at, event);
      ++at_event_[at];
    }
  }

  std::vector<uint8_t> choices_now() const {
    std::vector<uint8_t> choices;
    for (size_t thread = 0; thread < fibers_.count(); ++thread) {
      if (!fibers_.done(thread) && !fibers_.blocked(thread))
        choices.push_back(static_cast<uint8_t>(thread));
    }
    return choices;
  }

  uint64_t number_of_state() const {
    uint64_t number = shared_number();
    for (size_t at = 0; at < script_.size(); ++at) {
      const uint64_t place = at_event_[at] + (fibers_.started(at) ? 1 : 0);
      number = (number ^ progress.read[at]) * 0xBF58476D1CE4E5B9 + place;
      number ^= number >> 31;
    }
    return number;
  }

  std::string describe() const {
    static constexpr std::array<const char*, 4> kWords{"begin", "ok", "fail", "tick"};
    std::string text;
    for (const auto& thread : script_) {
      for (const Event event : thread)
        text += std::string(kWords[static_cast<size_t>(event)]) + " ";
      text += "| ";
    }
    return text;
  }

  Fibers fibers_;
  const Script& script_;
  const bool is_reference_;
  std::function<void(size_t)> body_;
  std::array<uint64_t, kMaxExplored> at_event_{};
  std::unordered_set<uint64_t> met_;
};

}  // namespace opmux::test
