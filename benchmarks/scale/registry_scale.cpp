#include "../world.hpp"
#include "scale.hpp"

namespace opmux::bench {
namespace {

/// Defines operators and implements each of them, one publication at a time.
class Growing {
 public:
  Growing() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {}

  void add_until(int count) {
    for (; count_ < count; ++count_) {
      const std::string name = "op" + std::to_string(count_);
      must(runtime.define(name + "(out Tensor y[T, H], Tensor x[T, H])"));
      held_.push_back(implement(name + "/bench.v1"));
    }
  }
  Registration implement(const std::string& id) {
    return runtime.implement({.id = id, .kind = Kind::default_, .kernel = {.run = nothing}})
        .value();
  }
  /// Leaves the implementations registered, so that the process ends without withdrawing them.
  ~Growing() {
    for (Registration& one : held_) one.keep();
  }

  Runtime runtime;

 private:
  int count_ = 0;
  std::vector<Registration> held_;
};

/// Seconds that defining and implementing this many operators in one step takes, and that
/// withdrawing the implementations takes.
std::pair<double, double> add_together(int count) {
  Runtime runtime = Runtime::create({.environment = {{}}, .backends = false}).value();
  std::vector<Definition> operators;
  std::vector<Implementation> kernels;
  for (int i = 0; i < count; ++i) {
    const std::string name = "op" + std::to_string(i);
    operators.push_back({name + "(out Tensor y[T, H], Tensor x[T, H])"});
    kernels.push_back(
        {.id = name + "/bench.v1", .kind = Kind::default_, .kernel = {.run = nothing}});
  }
  const uint64_t generation = runtime.generation();
  const double start = now_ns();
  Registration all = runtime.implement(kernels, operators).value();
  const double middle = now_ns();
  if (runtime.generation() != generation + 1) {
    must({Code::failed, "bench.publications", "one step was published more than once"});
  }
  must(all.withdraw());
  return {(middle - start) / 1e9, (now_ns() - middle) / 1e9};
}

/// Medians of the milliseconds that implementing and withdrawing one of many operators takes.
std::pair<double, double> publish_one(Growing& growing) {
  std::vector<double> adding, removing;
  for (int i = 0; i < 21; ++i) {
    const double start = now_ns();
    Registration one = growing.implement("op" + std::to_string(i * 997) + "/bench.v2");
    const double middle = now_ns();
    must(one.withdraw());
    adding.push_back((middle - start) / 1e6);
    removing.push_back((now_ns() - middle) / 1e6);
  }
  return {median(adding), median(removing)};
}

}  // namespace

std::vector<Figure> many_operators() {
  constexpr int kFew = 10'000, kMany = 100'000;
  const double memory = resident_mb(), start = now_ns();
  Growing growing;
  growing.add_until(kFew);
  const double few = (now_ns() - start) / 1e9;
  growing.add_until(kMany);
  const double many = (now_ns() - start) / 1e9, grown = resident_mb() - memory;
  const auto [adding, removing] = publish_one(growing);
  const double few_together = add_together(kFew).first;
  const auto [together, withdrawn] = add_together(kMany);
  char note[80], together_note[80];
  std::snprintf(note, sizeof note, "grows as operators^%.2f", exponent(kFew, few, kMany, many));
  std::snprintf(together_note, sizeof together_note, "grows as operators^%.2f",
                exponent(kFew, few_together, kMany, together));
  return {{"defining and implementing 100,000 operators one by one", many, 30, "s", false, note},
          {"the same in one step", together, 10, "s", false, together_note},
          {"withdrawing these 100,000 implementations in one step", withdrawn, 10, "s"},
          {"memory of 100,000 operators", grown, 300, "MB"},
          {"implementing one of 100,000 operators", adding, 1, "ms"},
          {"withdrawing it", removing, 1, "ms"}};
}

std::vector<Figure> many_shapes() {
  constexpr int64_t kShapes = 1'000'000;
  Runtime runtime = Runtime::create({.environment = {{}}, .backends = false}).value();
  must(runtime.define("shaped(out Tensor y[T, H], Tensor x[T, H])"));
  Caps caps = Caps{}.dtypes({f32});
  for (int i = 0; i < 6; ++i) caps.multiple_of("T", 1 << i);
  const Registration held = runtime
                                .implement({.id = "shaped/bench.v1",
                                            .kind = Kind::default_,
                                            .caps = caps,
                                            .kernel = {.run = nothing}})
                                .value();
  const Registration other =
      runtime
          .implement({.id = "shaped/bench.any", .kind = Kind::default_, .kernel = {.run = nothing}})
          .value();
  const Operator op = runtime.op("shaped").value();
  static float data[2];
  const auto call = [&](int64_t rows) {
    const TensorView y{data, f32, {rows, 64}}, x{data + 1, f32, {rows, 64}};
    must(op(y, x));
  };
  for (int64_t rows = 1; rows <= 1000; ++rows) call(rows);
  const double before = resident_mb(), start = now_ns();
  for (int64_t rows = 1001; rows <= kShapes; ++rows) call(rows);
  const double each = (now_ns() - start) / static_cast<double>(kShapes - 1000);
  char note[80];
  std::snprintf(note, sizeof note, "%.0f ns a call", each);
  return {{"memory of 1,000,000 shapes of one operator", resident_mb() - before, 50, "MB", false,
           note}};
}

}  // namespace opmux::bench
