#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "world.hpp"

namespace opmux::property {

/// Draws worlds, policies and calls. The same seed gives the same draws on every machine.
class Generator {
 public:
  explicit Generator(uint64_t seed) : engine_(seed) {}

  World world();
  /// A policy for this world; some are empty, and few leave no candidate.
  Policy policy(const World& world);
  /// A policy that environment variables can express.
  Policy environment(const World& world);
  /// Arguments that mostly match the schema.
  Call call(const World& world);
  /// Changes one thing in a call: a dimension everywhere or in one place, a stride, an address, a
  /// type, a number.
  void change(const World& world, Call& call);
  Ambient ambient();

  uint64_t below(uint64_t n) { return engine_() % n; }
  bool chance(uint64_t percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  template <class T>
  T one_of(std::initializer_list<T> items) {
    return *(items.begin() + below(items.size()));
  }

 private:
  using Words = std::vector<std::string>;

  Schema schema();
  Arg tensor_arg(size_t index, bool output);
  Arg scalar_arg(size_t index);
  void add_where(Schema& schema);
  std::vector<Backend> backends();
  Candidate candidate(const World& world, size_t index);
  Caps caps(const Schema& schema);
  /// The name of a dimension, or "rows"; empty if the schema has neither.
  std::string dim(const Schema& schema);
  std::vector<Hint> hints(const Schema& schema);
  void add_tensor_caps(const Schema& schema, Caps& caps);
  Verifier verifier(const Schema& schema);
  FactRef fact(const Schema& schema);

  std::string token(const World& world);
  Words tokens(const World& world);
  Condition computed();
  Condition leaf(const World& world);
  Condition condition(const World& world, int depth);
  Rule rule(const World& world);

  int64_t size();
  DType dtype();
  Value scalar(const Arg& arg);
  TensorView tensor(const std::vector<int64_t>& shape, DType dtype, size_t place);
  TensorView moved(const TensorView& tensor, size_t place);
  void fit_where(const Schema& schema, std::map<std::string, int64_t>& dims);
  void change_everywhere(const World& world, Call& call);
  void change_tensor(Value& value, size_t place);

  std::mt19937_64 engine_;
};

/// Names of the schema's dimensions, and of its tensor or scalar arguments.
std::vector<std::string> dims_of(const Schema& schema);
std::vector<std::string> args_of(const Schema& schema, bool tensors);

}  // namespace opmux::property
