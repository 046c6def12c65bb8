#include <array>
#include <barrier>
#include <thread>

#include "../world.hpp"
#include "scale.hpp"

namespace opmux::bench {
namespace {

constexpr std::array<DType, 4> kTypes{f32, f16, bf16, f64};

/// 300 operators with one implementation each. Every element type is a class of calls.
struct Operators {
  Operators() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    for (int i = 0; i < 300; ++i) {
      const std::string name = "op" + std::to_string(i);
      must(runtime.define(name +
                          "(out Tensor y[T, H], Tensor x[T, H], Tensor? w[H], float eps = 1e-6)"));
      held.push_back(
          runtime
              .implement(
                  {.id = name + "/bench.v1", .kind = Kind::default_, .kernel = {.run = nothing}})
              .value());
      all.push_back(runtime.op(name).value());
    }
  }
  /// Calls every operator once for each of the first `types` element types.
  void walk(size_t types) const {
    static double data[3][8];
    for (size_t i = 0; i < types; ++i) {
      const TensorView y{data[0], kTypes[i], {2, 4}}, x{data[1], kTypes[i], {2, 4}},
          w{data[2], kTypes[i], {4}};
      for (const Operator& op : all) must(op(y, x, w, 1e-6));
    }
  }
  Runtime runtime;
  std::vector<Registration> held;
  std::vector<Operator> all;
};

/// Threads that each run `work` once and then wait until the object is destroyed.
class Threads {
 public:
  Threads(int count, const std::function<void()>& work) : phase_(count + 1), work_(work) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
    phase_.arrive_and_wait();  // all exist
  }
  /// Lets all threads work and waits until they have.
  void work() {
    phase_.arrive_and_wait();
    phase_.arrive_and_wait();
  }
  ~Threads() {
    phase_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  void run() {
    phase_.arrive_and_wait();
    phase_.arrive_and_wait();
    work_();
    phase_.arrive_and_wait();
    phase_.arrive_and_wait();
  }
  std::barrier<> phase_;
  const std::function<void()> work_;
  std::vector<std::thread> threads_;
};

/// Memory that the plans of `count` threads take: 300 operators, four classes each.
double grown_memory(int count) {
  const Operators operators;
  operators.walk(kTypes.size());
  // The second walk uses the plans that the first one cached.
  Threads threads(count, [&] {
    operators.walk(kTypes.size());
    operators.walk(kTypes.size());
  });
  const double before = resident_mb();
  threads.work();
  return resident_mb() - before;
}

/// grown_memory() of a separate process, because the C library keeps the memory of threads that
/// ended.
double plan_memory(int count) {
  return in_child(
             [count] { return std::vector<Figure>{{"memory", grown_memory(count), 0, "MB"}}; })[0]
      .value;
}

Figure walking() {
  const Operators operators;
  std::vector<Subject> subjects{{"300 plans",
                                 [&](int count) {
                                   for (int i = 0; i < count; ++i) operators.walk(1);
                                 },
                                 40},
                                {"1,200 plans",
                                 [&](int count) {
                                   for (int i = 0; i < count; ++i) operators.walk(4);
                                 },
                                 10}};
  measure(subjects, 15);
  return {"a call when walking 1,200 plans / 300", subjects[1].ns() / 4 / subjects[0].ns(), 1.5,
          "x"};
}

}  // namespace

std::vector<Figure> plans_of_threads() {
  const double few = plan_memory(32);
  const double many = plan_memory(128);
  const auto bytes = static_cast<int>(many * 1e6 / (128 * 300 * 4));
  char note[80];
  std::snprintf(note, sizeof note, "%d bytes a plan; grows as threads^%.2f", bytes,
                exponent(32, few, 128, many));
  return {{"memory of 128 threads x 300 operators x 4 plans", many, 128, "MB", false, note},
          in_child([] { return std::vector<Figure>{walking()}; })[0]};
}

std::vector<Figure> counters_of_threads() {
  const auto milliseconds = [](int count) {
    const Operators operators;
    Threads threads(count, [&] { operators.walk(1); });
    threads.work();
    std::vector<double> rounds;
    for (int i = 0; i < 9; ++i) {
      const double start = now_ns();
      (void)operators.runtime.stats();
      rounds.push_back((now_ns() - start) / 1e6);
    }
    return median(rounds);
  };
  const double few = milliseconds(100), many = milliseconds(1000);
  char note[80];
  std::snprintf(note, sizeof note, "grows as threads^%.2f", exponent(100, few, 1000, many));
  return {{"stats() with 1,000 threads x 300 operators", many, 10, "ms", false, note}};
}

}  // namespace opmux::bench
