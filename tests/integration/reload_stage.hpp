#pragma once

#include <opmux/opmux.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "stage.hpp"

namespace opmux::test {

inline constexpr int kOperators = 300, kTouched = 3;

/// Duration in seconds; short unless OPMUX_RELOAD_SECONDS is set.
inline double reload_seconds() {
  const char* const asked = std::getenv("OPMUX_RELOAD_SECONDS");
  return asked == nullptr ? 2 : std::atof(asked);
}
/// Timings are checked only in long runs, which need an otherwise idle machine.
inline bool figures_count() { return std::getenv("OPMUX_RELOAD_SECONDS") != nullptr; }

inline std::string operator_name(int number) { return "op_" + std::to_string(number); }

/// 300 operators with implementations by a, b, c and the reference; a is chosen unless a policy
/// says otherwise.
class ReloadStage : public Stage {
 public:
  explicit ReloadStage(Options options = bare()) : Stage(std::move(options)) {
    for (int i = 0; i < kOperators; ++i) {
      const std::string name = operator_name(i);
      operators.push_back(define(name + "(out Tensor y[..., H], Tensor x[..., H])"));
      for (const char* provider : {"a", "b", "c"}) {
        held_.push_back(runtime
                            .implement({.id = name + "/" + provider + ".x",
                                        .kind = Kind::default_,
                                        .run = [](CallFrame&) { return Outcome::ok; }})
                            .value());
      }
    }
  }
  std::vector<Operator> operators;

 private:
  std::vector<Registration> held_;
};

/// A policy text of up to 20 rules that selects another implementation for three operators: b in
/// texts with even numbers, c in texts with odd ones.
struct NumberedText {
  explicit NumberedText(int number) : provider(number % 2 == 0 ? "b" : "c") {
    text = "opmux: 1\nrules:\n";
    for (int i = 0; i < kTouched; ++i) {
      touched.push_back((number * 7 + i * 101) % kOperators);
      text += "  - {name: " + rule_name(number, i) + ", op: " + operator_name(touched.back()) +
              ", prefer: [" + operator_name(touched.back()) + "/" + provider + ".x]}\n";
    }
    for (int i = kTouched; i < 20; ++i) {
      const std::string op = operator_name(touched[static_cast<size_t>(i % kTouched)]);
      text += "  - {name: r" + std::to_string(i) + ", op: " + op +
              ", rank: 10, boost: [{impl: " + op + "/a.x, add: " + std::to_string(number % 50) +
              "}]}\n";
    }
  }
  /// The name of the first rule contains the number of the text.
  static std::string rule_name(int number, int rule) {
    return rule == 0 ? "text_" + std::to_string(number) : "r" + std::to_string(rule);
  }
  /// The implementation that runs for an operator under this text.
  std::string chosen(int op) const {
    const bool mine = std::find(touched.begin(), touched.end(), op) != touched.end();
    return operator_name(op) + "/" + (mine ? provider : "a") + ".x";
  }
  std::string text, provider;
  std::vector<int> touched;
};

/// The same text with an error in one line; the kind of error varies.
inline std::string broken_text(int number) {
  std::string text = NumberedText(number).text;
  const char* const mistakes[] = {"perfer: [", "op: rms_nrom_", "rank: many, boost: [", "- - {"};
  const char* const places[] = {"prefer: [", "op: op_", "rank: 10, boost: [", "  - {"};
  const size_t which = static_cast<size_t>(number) % 4;
  const size_t at = text.find(places[which], which == 0 ? 0 : text.size() / 3);
  return text.replace(at, std::string(places[which]).size(), mistakes[which]);
}

}  // namespace opmux::test
