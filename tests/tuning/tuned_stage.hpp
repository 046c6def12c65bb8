#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "base/system/machine_facts.hpp"
#include "private_folder.hpp"
#include "schema/schema.hpp"
#include "stage.hpp"
#include "tune/machine.hpp"
#include "tuner/bundle_writer.hpp"

/// Runtimes with bundles of rows about `mul`, whose implementations record that they ran.
namespace opmux::test {

inline constexpr const char* kMul =
    "mul(out Tensor y[..., N], Tensor x[..., K], Tensor w[N, K], Tensor? bias[N])";

inline tune::Machine this_machine() { return tune::describe_machine(base::read_machine_facts()); }

/// A row that says that b.fast takes exp(`log_ratio`) times as long as a.first for K = N = 4 and
/// `first` to `last` rows on one thread.
inline tune::TuningRow row(double log_ratio = -0.8, int64_t first = 5, int64_t last = 95) {
  tune::TuningRow made;
  made.cell = {"f32,f32,f32", {{"K", 4}, {"N", 4}}, 1, false};
  made.range = {"rows", first, last};
  made.implementation = {"b.fast", "b1"};
  made.baseline = {"a.first", "a1"};
  made.log_ratio = log_ratio;
  made.low = log_ratio - 0.05;
  made.high = log_ratio + 0.05;
  made.rounds = 20;
  made.rigor = tune::Rigor::full;
  made.day = 20773;  // 2026-11-16
  made.tool = "0.1.0";
  return made;
}

inline uint64_t hash_of(const std::string& text) {
  const schema::Schema parsed = schema::parse_schema(text).value();
  return parsed.prefix_hash(parsed.args.size());
}

/// The bytes of a bundle with these rows about `mul`.
inline std::string bundle_of(std::vector<tune::TuningRow> rows,
                             tune::Machine machine = this_machine()) {
  tune::TuningSet set;
  set.machines.push_back(std::move(machine));
  set.operators.push_back({"mul", hash_of(kMul), 0, std::move(rows)});
  return tuner::write_bundle(set).value();
}

/// A runtime with a.first (priority 200), b.fast (100) and c.last (50); one thread.
struct TunedStage {
  explicit TunedStage(Options options) : stage(one_thread(std::move(options))) {
    add("a.first", "a1", 200);
    add("b.fast", "b1", 100);
    add("c.last", "c1", 50);
  }
  static Options one_thread(Options options) {
    options.threads = 1;
    return options;
  }
  void add(const std::string& id, const std::string& build, int priority) {
    stage.add({.id = "mul/" + id,
               .kind = Kind::default_,
               .priority = priority,
               .flags = OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_CAPTURE_SAFE,
               .build_id = build});
  }

  /// The implementation that runs for this many rows, without "mul/".
  std::string ran(int64_t rows, const CallOptions& options = {}, DType dtype = f32) {
    const std::string id = ran_by([&] {
      EXPECT_TRUE(op.with(options)(view(out, dtype, {rows, 4}), view(in, dtype, {rows, 4}),
                                   view(weight, dtype, {4, 4}))
                      .ok());
    });
    return id.substr(id.find('/') + 1);
  }
  Explanation explain(int64_t rows) {
    return op.explain(view(out, f32, {rows, 4}), view(in, f32, {rows, 4}),
                      view(weight, f32, {4, 4}));
  }
  static TensorView view(float* data, DType dtype, std::initializer_list<int64_t> shape) {
    return {data, dtype, shape};
  }

  alignas(64) static inline float out[65536], in[65536], weight[64];
  Stage stage;
  const Operator op = stage.define(kMul);
};

/// Options with the rows of a bundle in OPMUX_TUNING.
struct WithRows {
  explicit WithRows(std::vector<tune::TuningRow> rows, tune::Machine machine = this_machine())
      : path(folder.write("fleet.bundle", bundle_of(std::move(rows), std::move(machine)))) {}
  Options options() const {
    return bare({{"OPMUX_TUNING", path}, {"OPMUX_STATE_DIR", folder.at("state")}});
  }
  PrivateFolder folder;
  std::string path;
};

}  // namespace opmux::test
