#pragma once

#include <opmux/opmux.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// A test runtime with kernels that record that they ran.
namespace opmux::test {

/// The smallest operator that most tests need.
inline constexpr const char* kCopy = "copy(out Tensor y[..., H], Tensor x[..., H])";

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Options without the installed backends and without the environment of this process.
inline Options bare(Variables variables = {}) {
  Options options;
  options.environment = std::move(variables);
  options.backends = false;
  return options;
}

/// "value <- origin" of a setting; empty if it does not exist.
inline std::string setting(const Runtime& runtime, const std::string& key) {
  for (const SettingInfo& each : runtime.settings()) {
    if (each.key == key) return each.value + " <- " + each.origin;
  }
  return "";
}

/// Ids of the kernels that ran in this thread, in order; set by ran_by().
inline thread_local std::vector<std::string>* trail = nullptr;

/// The ids of the recording kernels that ran in this thread during `call`: "op/a.x op/b.y".
template <class Call>
std::string ran_by(Call&& call) {
  std::vector<std::string> ids;
  trail = &ids;
  std::forward<Call>(call)();
  trail = nullptr;
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : " ") + id;
  return text;
}

/// A kernel that records its runs; `body` may be changed between calls.
struct RecordingKernel {
  std::atomic<uint64_t> runs{0};
  std::function<Outcome(CallFrame&)> body = [](CallFrame&) { return Outcome::ok; };
  Registration registration;
};

class Stage {
 public:
  explicit Stage(Options options = bare()) : runtime(Runtime::create(std::move(options)).value()) {}

  Operator define(const std::string& schema, const DefineOptions& options = {}) {
    if (const Status status = runtime.define(schema, options); !status.ok()) throw Error(status);
    return runtime.op(schema.substr(0, schema.find('('))).value();
  }

  /// Adds an implementation that records its runs and returns the outcome of its body.
  RecordingKernel& add(Implementation what) {
    auto kernel = std::make_unique<RecordingKernel>();
    RecordingKernel& made = *kernel;
    if (what.run) made.body = std::move(what.run);
    if (what.kind == Kind::vendor && what.vendor.empty()) what.vendor = "acme";
    what.run = [&made, id = what.id](CallFrame& call) {
      made.runs.fetch_add(1, std::memory_order_relaxed);
      if (trail != nullptr) trail->push_back(id);
      return made.body(call);
    };
    kernels_[what.id] = std::move(kernel);
    made.registration = runtime.implement(what).value();
    return made;
  }
  RecordingKernel& kernel(const std::string& id) { return *kernels_.at(id); }

  CallStats stats(const std::string& id) const {
    for (const CallStats& stats : runtime.stats()) {
      if (stats.implementation == id) return stats;
    }
    return {};
  }

  Runtime runtime;

 private:
  std::map<std::string, std::unique_ptr<RecordingKernel>> kernels_;
};

/// The candidate of an explanation; empty if it does not exist.
inline Candidate candidate(const Explanation& explanation, const std::string& id) {
  for (const Candidate& each : explanation.candidates) {
    if (each.id == id) return each;
  }
  return {};
}

/// Memory for small tensors, and the views that most tests use: rows of H.
struct Rows {
  explicit Rows(int64_t rows = 2, int64_t h = 8)
      : y(out, f32, {rows, h}), x(in, f32, {rows, h}), w(weight, f32, {h}) {}
  alignas(4096) float out[1024] = {};
  alignas(4096) float in[1024] = {};
  alignas(64) float weight[256] = {};
  TensorView y, x, w;
};

/// Defines copy: a.x is chosen if H is a multiple of 16, otherwise b.x; c.x is last.
inline Operator define_three_copies(Stage& stage) {
  const Operator made = stage.define(kCopy);
  stage.add({.id = "copy/a.x",
             .kind = Kind::default_,
             .priority = 200,
             .caps = Caps{}.multiple_of("H", 16)});
  stage.add({.id = "copy/b.x", .kind = Kind::default_, .priority = 100});
  stage.add({.id = "copy/c.x", .kind = Kind::default_, .priority = 50});
  return made;
}

}  // namespace opmux::test
