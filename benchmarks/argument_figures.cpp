#include <functional>
#include <string>

#include "figure_groups.hpp"

namespace opmux::bench {
namespace {

/// Operators with one scalar each. With `slow_call_us`, the policy times calls.
struct Scalars {
  explicit Scalars(int64_t slow_call_us = 0)
      : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    for (const std::string scalar : {"float", "float?", "enum{near, far}"}) {
      const std::string name = scalar == "float"    ? "scaled"
                               : scalar == "float?" ? "biased"
                                                    : "moved";
      std::string schema = name;
      schema.append("(out Tensor y[N, H], Tensor x[N, H], ").append(scalar).append(" s)");
      must(runtime.define(schema));
      held.push_back(
          runtime
              .implement(
                  {.id = name + "/bench.one", .kind = Kind::default_, .kernel = {.run = nothing}})
              .value());
    }
    must(runtime.define("around(out Tensor y[N, H], Tensor x[N, H])"));
    held.push_back(runtime
                       .implement({.id = "around/bench.one",
                                   .kind = Kind::default_,
                                   .run =
                                       [this](CallFrame&) {
                                         inside();
                                         return Outcome::ok;
                                       }})
                       .value());
    if (slow_call_us == 0) return;
    Policy policy;
    policy.breaker.slow_call_us = slow_call_us;
    must(runtime.policy().set(policy));
  }
  Operator op(const char* name) const { return runtime.op(name).value(); }

  Runtime runtime;
  std::vector<Registration> held;
  std::function<void()> inside;  ///< body of the kernel of `around`
};

template <class Call>
Subject subject(const char* name, Call call) {
  return {name, [call](int count) {
            for (int i = 0; i < count; ++i) call();
          }};
}

Figure ratio(const char* name, std::vector<Subject> subjects, int rounds, double limit) {
  measure(subjects, rounds);
  return {name, subjects[1].ns() / subjects[0].ns(), limit, "x"};
}

}  // namespace

std::vector<Figure> argument_figures(int rounds) {
  Scalars world;
  const Scalars timed(1'000'000);
  const Tensors t(8, 64);
  const Operator scaled = world.op("scaled"), biased = world.op("biased"),
                 moved = world.op("moved");
  const Operator timed_scaled = timed.op("scaled"), around = world.op("around");
  const Subject plain = subject("a float", [&] { must(scaled(t.y, t.x, 2.0)); });
  std::vector<Figure> figures;
  figures.push_back(ratio("handle, int for a float, against a float",
                          {plain, subject("an int", [&] { must(scaled(t.y, t.x, 2)); })}, rounds,
                          3));
  figures.push_back(ratio("handle, none for a float?, against a float",
                          {subject("a float", [&] { must(biased(t.y, t.x, 2.0)); }),
                           subject("none", [&] { must(biased(t.y, t.x, none)); })},
                          rounds, 3));
  figures.push_back(ratio("handle, word of an enum, against its position",
                          {subject("a position", [&] { must(moved(t.y, t.x, 1)); }),
                           subject("a word", [&] { must(moved(t.y, t.x, "far")); })},
                          rounds, 3));
  figures.push_back(ratio("handle, calls timed by slow_call, against none",
                          {plain, subject("timed", [&] { must(timed_scaled(t.y, t.x, 2.0)); })},
                          rounds, 1.5));
  const Subject nested{"calls inside a call", [&](int count) {
                         world.inside = [&] {
                           for (int i = 0; i < count; ++i) must(scaled(t.y, t.x, 2.0));
                         };
                         must(around(t.y, t.x));
                       }};
  figures.push_back(
      ratio("handle, call inside a call, against one outside", {plain, nested}, rounds, 3));
  return figures;
}

}  // namespace opmux::bench
