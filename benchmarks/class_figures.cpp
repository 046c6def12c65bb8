#include <atomic>

#include "figure_groups.hpp"
#include "processor.hpp"

namespace opmux::bench {
namespace {

/// One operator with one candidate, whose capabilities ask sixteen questions about dimension H.
struct SixteenQuestions {
  SixteenQuestions() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    must(runtime.define("sixteen(out Tensor y[N, H], Tensor x[N, H], Tensor w[H])"));
    Caps caps = Caps{}.dtypes({f32});
    for (int i = 0; i < 6; ++i) caps.multiple_of("H", 1 << i);
    for (int i = 0; i < 5; ++i) caps.at_most("H", 1'000'000 + i);
    for (int i = 0; i < 5; ++i) caps.at_least("H", i);
    held = runtime
               .implement({.id = "sixteen/bench.fast",
                           .kind = Kind::default_,
                           .caps = caps,
                           .kernel = {.run = nothing}})
               .value();
  }
  Runtime runtime;
  Registration held;
};

/// One operator with 33 candidates and a policy of many rules; every fiftieth rule is for this
/// operator.
struct ManyRules {
  explicit ManyRules(int rules)
      : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    must(runtime.define("busy(out Tensor y[N, H], Tensor x[N, H], Tensor w[H])"));
    for (int i = 0; i < 49; ++i) {
      must(runtime.define("other" + std::to_string(i) + "(out Tensor y[N], Tensor x[N])"));
    }
    for (int i = 0; i < 32; ++i) {
      held.push_back(runtime
                         .implement({.id = "busy/bench.v" + std::to_string(i),
                                     .kind = Kind::default_,
                                     .priority = 100 + i,
                                     .caps = Caps{}.dtypes({f32, bf16}).multiple_of("H", 1 + i % 4),
                                     .kernel = {.run = nothing}})
                         .value());
    }
    // The verifier reads the exact H, so every H is a separate class and needs a cold decision.
    held.push_back(runtime
                       .implement({.id = "busy/bench.exact",
                                   .kind = Kind::default_,
                                   .priority = 1,
                                   .run = [](CallFrame&) { return Outcome::ok; },
                                   .verify = [](const Facts&) { return std::string(); },
                                   .verify_reads = {{{OPMUX_FACT_DIM, "H"}}}})
                       .value());
    must(runtime.policy().set(policy(rules)));
  }

  static Policy policy(int rules, int salt = 0) {
    Policy policy;
    for (int i = 0; i < rules; ++i) {
      Rule rule;
      rule.name = "rule" + std::to_string(i);
      rule.op = i % 50 == 0 ? "busy" : "other" + std::to_string(i % 50 - 1);
      rule.when = Condition::dim(i % 50 == 0 ? "H" : "N", Compare::greater, 64 + i % 1000);
      rule.boost = {{rule.op + "/bench.v" + std::to_string(i / 50 % 32), 1.0 + salt, 1}};
      policy.rules.push_back(std::move(rule));
    }
    return policy;
  }

  Runtime runtime;
  std::vector<Registration> held;
};

Figure unseen_shape(int rounds) {
  SixteenQuestions world;
  const Operator op = world.runtime.op("sixteen").value();
  // Three times as many as a thread remembers, so that none is remembered, and few enough for the
  // L2 cache, because loading the views of the caller from memory is not a cost of the dispatch.
  std::vector<Tensors> shapes;
  for (int64_t i = 1; i <= 1'500; ++i) shapes.emplace_back(8, i * 32);
  size_t at = 0;
  std::vector<Subject> subjects{bare_subject()};
  subjects.push_back({"a shape never seen, of a known class", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          const Tensors& t = shapes[at];
                          at = at + 1 < shapes.size() ? at + 1 : 0;
                          must(op(t.y, t.x, t.w));
                        }
                      }});
  measure(subjects, rounds);
  return {subjects[1].name + " (16 questions)", subjects[1].ns() / subjects[0].ns(),
          limit_by_forwarding(40, 85), "x"};
}

Figure cold_decision(int rounds, int rules, double limit, const char* name) {
  ManyRules world(rules);
  const Operator op = world.runtime.op("busy").value();
  std::vector<double> medians;
  std::vector<Subject> bare{bare_subject()};
  int64_t h = 1;
  for (int round = 0; round < rounds; ++round) {
    measure_once(bare);
    // Starts a new epoch with empty tables; the first call compiles them and is not measured.
    must(world.runtime.policy().set(ManyRules::policy(rules, round % 2)));
    std::vector<double> times;
    for (int i = 0; i < 1000; ++i) {
      Tensors t(8, ++h);
      CallReport report;
      must(op.with(report)(t.y, t.x, t.w));
      if (report.cached) throw Error(Status(Code::failed, "", "the decision was not cold"));
      if (i > 0) times.push_back(static_cast<double>(report.select_ns));
    }
    medians.push_back(median(times));
  }
  const double took_ns = median(medians);
  return {name, took_ns / bare[0].ns(), limit, "x", false, std::to_string(took_ns / 1000) + " us"};
}

/// One operator of ten tensors and scalars with one implementation.
struct TenArguments {
  TenArguments() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    must(runtime.define(
        "ten(out Tensor y[N, H], Tensor x[N, H], Tensor w[H], Tensor? a[H], Tensor? b[H], "
        "Tensor? c[H], Tensor? d[H], int m = 1, float eps = 1e-6, bool flag = false)"));
    held.push_back(
        runtime
            .implement({.id = "ten/bench.one", .kind = Kind::default_, .kernel = {.run = nothing}})
            .value());
  }
  Operator op() const { return runtime.op("ten").value(); }

  Runtime runtime;
  std::vector<Registration> held;
};

struct Limit {
  std::string name;
  double times;
};

/// The time of calls of one operator relative to those of another, with the same shapes in turn.
Figure against(int rounds, const Operator& without, const Operator& with,
               const std::vector<Tensors>& shapes, const Limit& limit) {
  std::vector<Subject> subjects;
  for (const Operator* op : {&without, &with}) {
    subjects.push_back({limit.name, [op, &shapes](int count) {
                          size_t at = 0;
                          for (int i = 0; i < count; ++i) {
                            const Tensors& t = shapes[at];
                            at = at + 1 < shapes.size() ? at + 1 : 0;
                            must((*op)(t.y, t.x, t.w));
                          }
                        }});
  }
  measure(subjects, rounds);
  return {limit.name, subjects[1].ns() / subjects[0].ns(), limit.times, "x"};
}

const std::vector<Tensors>& few_shapes() {
  static const std::vector<Tensors> shapes{{8, 64}, {9, 64}, {11, 64}};
  return shapes;
}

/// Calls of an operator for which another implementation has a verifier, which is asked once for
/// each class, against calls without it.
Figure verifier(int rounds) {
  const TenArguments plain;
  TenArguments verified;
  std::atomic<int> asked{0};
  verified.held.push_back(verified.runtime
                              .implement({.id = "ten/bench.other",
                                          .kind = Kind::default_,
                                          .priority = 1,
                                          .kernel = {.run = nothing},
                                          .verify = [&](const Facts&) { return ++asked, ""; }})
                              .value());
  Figure figure = against(rounds, plain.op(), verified.op(), few_shapes(),
                          {"handle, verifier of another implementation, against none", 1.2});
  if (asked > 1) figure.value = 1e9;
  figure.note = "asked " + std::to_string(asked) + " times";
  return figure;
}

int32_t decline_three_columns(void*, const opmux_call* call) {
  return call->args[0].value.tensor->shape[1] == 3 ? OPMUX_DECLINED : OPMUX_OK;
}

/// An operator whose first implementation declines one shape.
struct Declining {
  Declining() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    must(runtime.define("copy(out Tensor y[N, H], Tensor x[N, H], Tensor w[H])"));
    add("copy/bench.first", 2, decline_three_columns);
    add("copy/bench.second", 1, nothing);
  }
  void add(const char* id, int priority, int32_t (*run)(void*, const opmux_call*)) {
    held.push_back(
        runtime
            .implement(
                {.id = id, .kind = Kind::default_, .priority = priority, .kernel = {.run = run}})
            .value());
  }
  Operator op() const { return runtime.op("copy").value(); }

  Runtime runtime;
  std::vector<Registration> held;
};

/// Calls of a few shapes of an operator with 10,000 rules that compare a dimension with different
/// numbers, against calls without rules.
Figure equality_rules(int rounds) {
  const Declining without;
  Declining with;
  Policy policy;
  for (int i = 0; i < 10'000; ++i) {
    policy.rules.push_back({.op = "copy",
                            .when = Condition::dim("N", Compare::equal, 3 * i + 10),
                            .boost = {{"copy/bench.first", 1.0, 1}}});
  }
  must(with.runtime.policy().set(policy));
  return against(rounds, without.op(), with.op(), few_shapes(),
                 {"handle, 10,000 rules about a dimension, against none", 1.2});
}

/// Calls of a hundred shapes in turn where another shape was declined, against where none was.
Figure declined_shape(int rounds) {
  const Declining without, with;
  std::vector<Tensors> shapes;
  for (int64_t i = 1; i <= 100; ++i) shapes.emplace_back(8, 16 * i);
  const Tensors declined(8, 3);
  must(with.op()(declined.y, declined.x, declined.w));
  return against(rounds, without.op(), with.op(), shapes,
                 {"handle, 100 shapes where another was declined, against none", 1.1});
}

}  // namespace

std::vector<Figure> class_figures(int rounds) {
  return {
      unseen_shape(rounds),
      cold_decision(rounds, 1000, limit_by_forwarding(2400, 5000),
                    "cold decision, 33 candidates, 1,000 rules, 20 apply"),
      cold_decision(rounds, 10'000, 8000, "cold decision, 33 candidates, 10,000 rules, 200 apply"),
      equality_rules(rounds),
      verifier(rounds),
      declined_shape(rounds)};
}

}  // namespace opmux::bench
