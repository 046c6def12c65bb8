// The functions of the C++ API that the C API does not use.
#include <chrono>
#include <cstring>
#include <vector>

#include "scenario.hpp"

namespace opmux::test {
namespace {

/// Writes a Status to the error of a scenario.
int32_t report(const Status& status, opmux_error* error) {
  const auto outcome = static_cast<int32_t>(status.code());
  if (error == nullptr || status.ok()) return outcome;
  error->outcome = outcome;
  error->text_size = status.message().copy(error->text, error->text_capacity);
  static std::array<char, 64> reason;
  error->code = {reason.data(), status.reason().copy(reason.data(), reason.size())};
  return outcome;
}

/// Runs a function that returns a value, and throws std::bad_alloc if there is no memory for it.
template <class Ask>
int32_t value_of(opmux_error* error, Ask&& ask) {
  try {
    ask();
    return OPMUX_OK;
  } catch (const std::bad_alloc&) {
    static char text[] = "std::bad_alloc";
    error->outcome = OPMUX_RESOURCE;
    error->text = text;
    error->text_size = std::size(text) - 1;
    error->code = {text, std::size(text) - 1};
    return OPMUX_RESOURCE;
  }
}

/// A runtime of the C++ API beside that of the C API.
void make_runtime(World& world) {
  Options options;
  options.backends = false;
  options.environment.emplace();
  options.sources.own_thread = false;
  auto made = Runtime::create(options);
  require(made.has_value(), "Runtime::create");
  world.cpp = std::make_unique<Runtime>(*std::move(made));
  auto op = world.cpp->op("silu_and_mul");
  require(op.has_value(), "Runtime::op");
  world.cpp_op = std::make_unique<Operator>(*op);
  world.own = std::make_unique<Implementation>();
  world.own->id = "silu_and_mul/another_backend.with_a_variant";
  world.own->vendor = "a_vendor_with_a_long_name";
  world.own->priority = 900;
  world.own->run = [](CallFrame&) { return Outcome::declined; };
  world.policy = std::make_unique<Policy>();
  world.policy->prefer = {"reference", "vendor:a_vendor_with_a_long_name"};
}

int32_t create(World& world, opmux_error* error) {
  auto made = Runtime::create();
  if (!made) return report(made.error(), error);
  return value_of(error, [&] { world.cpp = std::make_unique<Runtime>(*std::move(made)); });
}

int32_t call_by_name(World& world, opmux_error* error) {
  return report(world.cpp->call("silu_and_mul", TensorView(world.call.y.tensor),
                                TensorView(world.call.x.tensor)),
                error);
}

int32_t call_unknown(World& world, opmux_error* error) {
  return report(world.cpp->call("silu_and_nul", TensorView(world.call.y.tensor)), error);
}

int32_t call_with_options(World& world, opmux_error* error) {
  CallReport told;
  CallOptions options;
  options.max_threads = 1;
  return report(world.cpp_op->with(told, options)(TensorView(world.call.y.tensor),
                                                  TensorView(world.call.x.tensor)),
                error);
}

int32_t define(World& world, opmux_error* error) {
  return report(world.cpp->define("me.thing(out Tensor y[N], Tensor x[N])"), error);
}

int32_t implement(World& world, opmux_error* error) {
  auto made = world.cpp->implement(*world.own);
  if (!made) return report(made.error(), error);
  const int32_t called = call_by_name(world, error);
  const Status withdrawn = made->withdraw();
  return called == OPMUX_OK ? report(withdrawn, error) : called;
}

void implemented(World& world) {
  make_runtime(world);
  auto made = world.cpp->implement(*world.own);
  require(made.has_value(), "implement");
  world.own_registration = std::make_unique<Registration>(*std::move(made));
  require(call_by_name(world, nullptr) == OPMUX_OK, "call");
}

int32_t drop_registration(World& world, opmux_error*) {
  world.own_registration = nullptr;
  return OPMUX_OK;
}

int32_t split_registration(World& world, opmux_error* error) {
  if (world.own_registration == nullptr) return OPMUX_OK;
  return value_of(error, [&] {
    for (Registration& part : world.own_registration->split()) part.keep();
  });
}

int32_t enter_scope(World& world, opmux_error* error) {
  auto scope = Scope::make(*world.cpp, *world.policy);
  if (!scope) return report(scope.error(), error);
  int32_t outcome = OPMUX_OK;
  const int32_t made = value_of(error, [&] {
    const EnteredScope entered(*scope);
    outcome = call_by_name(world, error);
  });
  return made == OPMUX_OK ? outcome : made;
}

int32_t policy_scope(World& world, opmux_error* error) {
  int32_t outcome = OPMUX_OK;
  const int32_t made = value_of(error, [&] {
    const PolicyScope scope(*world.cpp, *world.policy);
    outcome = scope.status().ok() ? call_by_name(world, error) : report(scope.status(), error);
  });
  return made == OPMUX_OK ? outcome : made;
}

int32_t ambient_scope(World& world, opmux_error* error) {
  int32_t outcome = OPMUX_OK;
  const int32_t made = value_of(error, [&] {
    const AmbientScope scope({.deterministic = true});
    outcome = call_by_name(world, error);
  });
  return made == OPMUX_OK ? outcome : made;
}

int32_t set_policy(World& world, opmux_error* error) {
  return report(world.cpp->policy().set(*world.policy), error);
}

int32_t compare_policies(World& world, opmux_error* error) {
  return report(
      world.cpp->policy()
          .compare("opmux: 1\nrules: []\n", "before.yaml",
                   "opmux: 1\nrules: [{op: softmax, prefer: [reference]}]\n", "after.yaml")
          .error(),
      error);
}

int32_t check_policy(World& world, opmux_error* error) {
  return report(world.cpp->policy().check("opmux: 1\nrules: []\n", "policy.yaml").error(), error);
}

int32_t get_policy(World& world, opmux_error* error) {
  return value_of(error, [&] { (void)world.cpp->policy().get(); });
}

int32_t bind(World& world, opmux_error* error) {
  auto plan = world.cpp_op->bind(TensorView(world.call.y.tensor), TensorView(world.call.x.tensor));
  if (!plan) return report(plan.error(), error);
  return report((*plan)(TensorView(world.call.y.tensor), TensorView(world.call.x.tensor)), error);
}

int32_t decide(World& world, opmux_error* error) {
  return report(
      world.cpp_op->decide(TensorView(world.call.y.tensor), TensorView(world.call.x.tensor))
          .error(),
      error);
}

int32_t infer_outputs(World& world, opmux_error* error) {
  return report(world.cpp_op->infer_outputs(world.call.args).error(), error);
}

int32_t explain(World& world, opmux_error* error) {
  return value_of(error, [&] {
    (void)world.cpp_op->explain(TensorView(world.call.y.tensor), TensorView(world.call.x.tensor));
  });
}

int32_t set_selector(World& world, opmux_error* error) {
  int32_t outcome = OPMUX_OK;
  const int32_t made = value_of(error, [&] {
    Selector selector;
    selector.pick = [](const Selection&) -> std::optional<size_t> { return std::nullopt; };
    outcome = report(world.cpp->set_selector(selector), error);
  });
  return made == OPMUX_OK ? outcome : made;
}

int32_t lists(World& world, opmux_error* error) {
  return value_of(error, [&] {
    (void)world.cpp->list();
    (void)world.cpp->stats();
    (void)world.cpp->settings();
    (void)world.cpp->health().report();
    (void)world.cpp->lockfile().current();
  });
}

int32_t freeze(World& world, opmux_error* error) {
  return report(world.cpp->lockfile().freeze().error(), error);
}

int32_t tick(World& world, opmux_error* error) {
  world.now_ns += 2'000'000'000;
  return value_of(error, [&] { world.cpp->tick(std::chrono::nanoseconds(world.now_ns)); });
}

int32_t constant(World& world, opmux_error* error) {
  return report(world.cpp->constant(TensorView(world.weight.tensor)).error(), error);
}

int32_t destroy(World& world, opmux_error*) {
  world.own_registration = nullptr;
  world.cpp = nullptr;
  return OPMUX_OK;
}

constexpr Scenario kScenarios[] = {
    {"cpp.create", nullptr, create, OPMUX_OK, false, 0, 11},
    {"cpp.destroy", implemented, destroy},
    {"cpp.call", make_runtime, call_by_name},
    {"cpp.call.unknown", make_runtime, call_unknown, 16},
    {"cpp.call.options", make_runtime, call_with_options},
    {"cpp.define", make_runtime, define},
    {"cpp.implement", make_runtime, implement},
    {"cpp.registration.drop", implemented, drop_registration},
    {"cpp.registration.split", implemented, split_registration},
    {"cpp.scope", make_runtime, enter_scope},
    {"cpp.policy_scope", make_runtime, policy_scope},
    {"cpp.ambient_scope", make_runtime, ambient_scope},
    {"cpp.policy.set", make_runtime, set_policy},
    {"cpp.policy.get", make_runtime, get_policy},
    {"cpp.policy.compare", make_runtime, compare_policies},
    {"cpp.policy.check", make_runtime, check_policy},
    {"cpp.bind", make_runtime, bind},
    {"cpp.decide", make_runtime, decide},
    {"cpp.infer_outputs", make_runtime, infer_outputs},
    {"cpp.explain", make_runtime, explain},
    {"cpp.selector", make_runtime, set_selector},
    {"cpp.lists", implemented, lists},
    {"cpp.freeze", make_runtime, freeze},
    {"cpp.tick", implemented, tick},
    {"cpp.constant", make_runtime, constant},
};

}  // namespace

std::span<const Scenario> cpp_scenarios() { return kScenarios; }

}  // namespace opmux::test
