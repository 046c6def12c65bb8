#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "plain_model.hpp"

namespace opmux::test {
namespace {

using health::Breaker;
using health::BreakerChange;
using health::BreakerState;
using health::Ending;
using health::kSecondNs;
using Model = PlainModel;

/// Drives the real breaker and the simple model with the same events.
class Both {
 public:
  explicit Both(uint64_t seed) : random_(seed), real_(false, {}, seed) {}

  void happen() {
    // Kernels have phases in which most calls succeed or most fail.
    if (random_() % 500 == 0) failing_ = static_cast<unsigned>(random_() % 100);
    const uint64_t draw = random_() % 100;
    if (draw < 2) {
      advance();
    } else if (draw < 30 && !out_.empty()) {
      give_back(random_() % out_.size());
    } else {
      call(random_() % (random_() % 8 == 0 ? 24 : 3));
    }
  }

  std::string differs() {
    if (model_.armed != real_.data().armed) return "armed";
    for (size_t name = 0; name < 24; ++name) {
      const auto real = real_.cell_of(key(name));
      const Model::Class* const model = model_.find(std::to_string(name));
      const Model::Class nothing;
      const Model::Class& own = model == nullptr ? nothing : *model;
      const health::BreakerCell cell = real.value_or(health::BreakerCell{});
      if (cell.state != own.state) return "state of " + std::to_string(name);
      if (static_cast<int>(cell.consecutive) != own.in_a_row) return "failures in a row";
      if (cell.window.failures() != std::ranges::count(own.outcomes, true)) return "window";
      if (static_cast<int>(cell.openings) != own.openings) return "openings";
      if (cell.permits_out > 3) return "permits";
    }
    return wrong_;
  }
  uint64_t openings() const { return openings_; }
  uint64_t wholes() const { return wholes_; }

 private:
  struct Out {
    size_t name;
    health::Pass pass;
    std::string of;
    int period;
  };
  static health::BreakerKey key(size_t name) {
    health::BreakerKey key;
    key.log2[0] = static_cast<uint8_t>(name);
    return key;
  }
  Model::Class* by_name(const std::string& name) {
    if (name == "whole") return &model_.whole;
    if (name == "rest") return &model_.rest;
    const auto found = model_.classes.find(name);
    return found == model_.classes.end() ? nullptr : &found->second;
  }

  void call(size_t name) {
    const std::string word = std::to_string(name);
    auto admitted = model_.enter(word);
    const health::Pass pass = real_.enter(key(name));
    if (pass.admitted != admitted.has_value()) {
      // Permits of a class that was evicted meanwhile are still outstanding.
      const auto cell = real_.cell_of(key(name));
      if (pass.admitted || !cell || cell->permits_out != 3) wrong_ = "admission of " + word;
      if (admitted && !admitted->empty()) --by_name(*admitted)->permits;
      return;
    }
    if (!pass.admitted) return;
    if (pass.permit != !admitted->empty()) wrong_ = "permit of " + word;
    const int period = admitted->empty() ? 0 : by_name(*admitted)->period;
    out_.push_back({name, pass, *admitted, period});
    if (random_() % 4 != 0) give_back(out_.size() - 1);
  }

  void give_back(size_t at) {
    const Out out = out_[at];
    out_.erase(out_.begin() + static_cast<ptrdiff_t>(at));
    const std::string word = std::to_string(out.name);
    const Ending ending = random_() % 50 == 0          ? Ending::neither
                          : random_() % 100 < failing_ ? Ending::failure
                                                       : Ending::success;
    Model::Class* const of = out.of.empty() ? nullptr : by_name(out.of);
    if (of != nullptr && of->permits > 0 && of->period >= out.period) --of->permits;
    if (ending == Ending::failure) model_.fail(word);
    if (ending == Ending::success && out.of.empty()) model_.succeed(word);
    if (ending == Ending::success && of != nullptr) model_.succeed_with_permit(*of, out.period);
    follow(real_.leave(key(out.name), out.pass, ending, now_));
  }

  void advance() {
    now_ += random_() % (40 * kSecondNs);
    const BreakerChange change = real_.advance(now_);
    for (uint8_t i = 0; i < change.count; ++i) {
      const uint8_t cell = change.steps[i].cell;
      if (now_ < until_[cell]) wrong_ = "half open too early";
      model_.half_open(*by_name(name_of(cell)));
    }
    for (uint8_t cell = 0; cell < Breaker::kCells; ++cell) {
      const health::BreakerCell& own = real_.data().cells[cell];
      if (own.state == BreakerState::open && now_ >= until_[cell]) wrong_ = "open too long";
    }
    follow(change);
  }

  std::string name_of(uint8_t cell) const {
    if (cell == Breaker::kWhole) return "whole";
    if (cell == Breaker::kOverflow) return "rest";
    return std::to_string(real_.data().keys[cell].log2[0]);
  }

  void follow(const BreakerChange& change) {
    for (uint8_t i = 0; i < change.count; ++i) {
      const BreakerChange::Step& step = change.steps[i];
      if (step.to != BreakerState::open) continue;
      ++openings_;
      wholes_ += step.cell == Breaker::kWhole ? 1 : 0;
      until_[step.cell] = now_ + step.open_for_ns;
      const uint64_t seconds = std::min<uint64_t>(30 * step.openings, 300);
      if (step.open_for_ns * 10 < seconds * 9 * kSecondNs ||
          step.open_for_ns * 10 > seconds * 11 * kSecondNs)
        wrong_ = "length of an opening";
    }
    if (!change.publish) return;
    real_.published(real_.announce());
  }

  std::mt19937_64 random_;
  Breaker real_;
  Model model_;
  std::vector<Out> out_;
  std::array<uint64_t, Breaker::kCells> until_{};
  uint64_t now_ = kSecondNs, openings_ = 0, wholes_ = 0;
  unsigned failing_ = 5;
  std::string wrong_;
};

TEST(BreakerModel, agrees_with_a_plain_model_on_random_events) {
  const char* const wanted = std::getenv("OPMUX_BREAKER_EVENTS");
  const uint64_t events = wanted == nullptr ? 200'000 : std::stoull(wanted);
  Both both(7);
  for (uint64_t i = 0; i < events; ++i) {
    both.happen();
    const std::string differs = i % 16 == 0 ? both.differs() : "";
    ASSERT_EQ(differs, "") << "after " << i << " events";
  }
  EXPECT_GT(both.openings(), events / 1000);
  EXPECT_GT(both.wholes(), 10u);
}

}  // namespace
}  // namespace opmux::test
