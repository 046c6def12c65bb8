#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "health/breaker.hpp"

namespace opmux::test {

/// A second, simple implementation of the breaker: one thread, no memory limits, a list of outcomes
/// per class. The duration of an opening is checked against bounds instead of computed.
class PlainModel {
 public:
  using State = health::BreakerState;
  struct Class {
    State state = State::closed;
    std::deque<bool> outcomes;
    int in_a_row = 0, successes = 0, openings = 0, permits = 0;
    int period = 0;
  };
  struct Permit {
    std::string of;
    int period = 0;
  };

  /// The class to which a call of `name` currently belongs; null if there is none yet.
  Class* find(const std::string& name) {
    if (whole.state != State::closed) return &whole;
    const auto found = classes.find(name);
    if (found != classes.end()) return &found->second;
    return classes.size() == 16 ? &rest : nullptr;
  }

  /// nullopt: refused. Empty: admitted without a permit. Otherwise the name of the class that
  /// granted a permit.
  std::optional<std::string> enter(const std::string& name) {
    Class* const own = find(name);
    if (own == nullptr || own->state == State::closed) return "";
    if (own->state != State::half_open || own->permits == 3) return std::nullopt;
    ++own->permits;
    return own == &whole ? "whole" : own == &rest ? "rest" : name;
  }

  void fail(const std::string& name) {
    armed = true;
    clean = 0;
    Class* own = find(name);
    if (own == nullptr) own = &classes[name];
    if (own->state == State::half_open) return open(*own);
    if (own->state != State::closed) return;
    ++own->in_a_row;
    add(*own, true);
    const auto failures = std::ranges::count(own->outcomes, true);
    const auto size = static_cast<ptrdiff_t>(own->outcomes.size());
    if (own->in_a_row >= 5 || (size >= 20 && 2 * failures >= size)) open(*own);
  }

  void succeed(const std::string& name) {
    if (!armed) return;
    if (Class* const own = find(name)) {
      if (own->state != State::closed) return;
      own->in_a_row = 0;
      add(*own, false);
    }
    if (++clean >= 100 && all_closed()) trust();
  }
  void succeed_with_permit(Class& own, int period) {
    if (own.state != State::half_open || own.period != period) return;
    if (++own.successes == 2) set(own, State::closed);
  }

  void half_open(Class& own) { set(own, State::half_open); }

  std::map<std::string, Class> classes;
  Class rest, whole;
  bool armed = false;
  int clean = 0;

 private:
  static void add(Class& own, bool failed) {
    own.outcomes.push_back(failed);
    if (own.outcomes.size() > 100) own.outcomes.pop_front();
  }
  static void set(Class& own, State state) {
    own.state = state;
    own.outcomes.clear();
    own.in_a_row = own.successes = 0;
    ++own.period;
  }
  void open(Class& own) {
    set(own, State::open);
    ++own.openings;
    if (&own == &whole) return;
    auto open_classes = std::ranges::count_if(
        classes, [](const auto& each) { return each.second.state == State::open; });
    open_classes += rest.state == State::open ? 1 : 0;
    if (open_classes < 3) return;
    classes.clear();
    rest = {};
    open(whole);
  }
  bool all_closed() const {
    return rest.state == State::closed && whole.state == State::closed &&
           std::ranges::all_of(classes,
                               [](const auto& each) { return each.second.state == State::closed; });
  }
  void trust() {
    classes.clear();
    rest = whole = {};
    armed = false;
    clean = 0;
  }
};

}  // namespace opmux::test
