#include "world.hpp"

namespace opmux::bench {

void give_up(const Status& status) { throw Error(status); }

World::World() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
  for (int i = 0; i < kOperators; ++i) {
    operators.push_back(add("op" + std::to_string(i), "w[H]"));
  }
  wide.push_back(add("wide", "w[..., H]"));
}

Operator World::add(const std::string& name, const std::string& weight) {
  const Status defined = runtime.define(name + "(out Tensor y[..., H], Tensor x[..., H], Tensor? " +
                                        weight + ", float eps = 1e-6)");
  if (!defined.ok()) throw Error(defined);
  for (int k = 0; k < kImplementations; ++k) {
    registrations_.push_back(
        runtime
            .implement({.id = name + "/bench.v" + std::to_string(k),
                        .kind = Kind::default_,
                        .priority = 100 + k,
                        .caps = Caps{}.multiple_of("H", 1 << k).dtypes({f32, bf16}),
                        .kernel = {.run = nothing}})
            .value());
  }
  return runtime.op(name).value();
}

}  // namespace opmux::bench
