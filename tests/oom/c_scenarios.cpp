// The functions of the C API that create runtimes, call operators and register implementations.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels.hpp"
#include "scenario.hpp"

namespace opmux::test {
namespace {

const opmux_str kName = OPMUX_STR("silu_and_mul");

/// Creates `world.runtime` with these options and the operators that usable() calls.
int32_t create(World& world, const opmux_options& options, opmux_error* error) {
  int32_t outcome = opmux_runtime_create(&options, &world.runtime, error);
  if (outcome == OPMUX_OK) outcome = opmux_operator_get(world.runtime, kName, &world.op, error);
  if (outcome != OPMUX_OK && world.runtime != nullptr) {
    opmux_runtime_destroy(std::exchange(world.runtime, nullptr));
  }
  return outcome;
}

opmux_options plain_options() {
  opmux_options options{};
  options.struct_size = sizeof options;
  options.flags = OPMUX_OPTION_NO_BACKENDS;
  return options;
}

int32_t create_plain(World& world, opmux_error* error) {
  return create(world, plain_options(), error);
}

int32_t create_with_environment(World& world, opmux_error* error) {
  const opmux_variable variables[] = {
      {OPMUX_STR("OPMUX_PREFER"), OPMUX_STR("vendor")},
      {OPMUX_STR("OPMUX_DENY_VENDORS"), OPMUX_STR("a_vendor_with_a_long_name,another")}};
  opmux_options options = plain_options();
  options.environment = variables;
  options.environment_count = std::size(variables);
  return create(world, options, error);
}

void write_policy(World& world) {
  std::ofstream(world.config) << "opmux: 1\n"
                                 "rules:\n"
                                 "  - {name: a, op: silu_and_mul, prefer: [reference]}\n";
  std::filesystem::permissions(world.config, std::filesystem::perms(0600));
}

int32_t create_with_policy_file(World& world, opmux_error* error) {
  opmux_source_options sources{};
  sources.struct_size = sizeof sources;
  sources.config = opmux_str_of(world.config.c_str());
  opmux_options options = plain_options();
  options.sources = &sources;
  return create(world, options, error);
}

void make_state_folder(World& world) {
  std::filesystem::create_directories(world.state);
  std::filesystem::permissions(world.state, std::filesystem::perms(0700));
}

int32_t create_with_state(World& world, opmux_error* error) {
  opmux_state_options state{};
  state.struct_size = sizeof state;
  state.crash_journal = OPMUX_CRASH_JOURNAL_ON;
  state.folder = opmux_str_of(world.state.c_str());
  state.state_page = 1;
  opmux_options options = plain_options();
  options.state = &state;
  return create(world, options, error);
}

int32_t destroy(World& world, opmux_error*) {
  opmux_runtime_destroy(std::exchange(world.runtime, nullptr));
  return OPMUX_OK;
}

void call_once(World& world) {
  require(opmux_call_operator(world.op, world.call.args.data(), 2, nullptr) == OPMUX_OK, "call");
}

int32_t get(World& world, opmux_error* error) {
  return opmux_operator_get(world.runtime, kName, &world.op, error);
}

int32_t get_unknown(World& world, opmux_error* error) {
  opmux_operator* found = nullptr;
  return opmux_operator_get(world.runtime, OPMUX_STR("silu_and_nul"), &found, error);
}

/// A call that must compute the right numbers whenever it succeeds.
template <class Call>
int32_t checked_call(World& world, Call& call, opmux_error* error) {
  call.clear();
  const int32_t outcome = opmux_call_operator(world.op, call.args.data(), 2, error);
  return outcome == OPMUX_OK && !call.right() ? -1 : outcome;
}

int32_t call(World& world, opmux_error* error) { return checked_call(world, world.call, error); }

int32_t call_other_shape(World& world, opmux_error* error) {
  return checked_call(world, world.other_call, error);
}

int32_t call_refused(World& world, opmux_error* error) {
  const opmux_arg args[] = {world.call.args[0], world.other_call.args[1]};
  return opmux_call_operator(world.op, args, 2, error);
}

int32_t call_with_report(World& world, opmux_error* error) {
  opmux_report report{};
  report.struct_size = sizeof report;
  opmux_call_options options{};
  options.struct_size = sizeof options;
  options.max_threads = 1;
  const int32_t outcome =
      opmux_call_operator_with(world.op, world.call.args.data(), 2, &options, &report, error);
  return report.outcome == outcome ? outcome : -1;
}

void make_constant(World& world) {
  require(opmux_constant_create(world.runtime, &world.weight.tensor, &world.constant, nullptr) ==
              OPMUX_OK,
          "constant");
}

int32_t call_with_constant(World& world, opmux_error* error) {
  const opmux_arg args[] = {world.linear_y.arg(), world.linear_x.arg(),
                            opmux_arg_constant(world.constant)};
  const int32_t outcome = opmux_call_operator(world.linear, args, 3, error);
  const std::array<float, 4> expected{1, 2, 5, 6};
  return outcome == OPMUX_OK && world.linear_y.data != expected ? -1 : outcome;
}

int32_t constant_create(World& world, opmux_error* error) {
  return opmux_constant_create(world.runtime, &world.weight.tensor, &world.constant, error);
}

int32_t constant_changed(World& world, opmux_error* error) {
  const int32_t outcome = opmux_constant_changed(world.constant, error);
  uint64_t bytes = 0;
  return outcome == OPMUX_OK ? opmux_constant_packed_bytes(world.constant, &bytes, error) : outcome;
}

/// Makes an instance, calls it twice and destroys it.
int32_t instance_call(World& world, opmux_error* error) {
  const opmux_named_arg fixed{OPMUX_STR("weight"), world.weight.arg()};
  const opmux_arg args[] = {world.linear_y.arg(), world.linear_x.arg()};
  opmux_instance* instance = nullptr;
  int32_t outcome = opmux_instance_create(world.linear, &fixed, 1, &instance, error);
  for (int i = 0; i < 2 && outcome == OPMUX_OK; ++i) {
    outcome = opmux_instance_call(instance, args, 2, error);
  }
  opmux_instance_destroy(instance);
  const std::array<float, 4> expected{1, 2, 5, 6};
  return outcome == OPMUX_OK && world.linear_y.data != expected ? -1 : outcome;
}

int32_t plan_bind(World& world, opmux_error* error) {
  return opmux_plan_bind(world.op, world.call.args.data(), 2, 0, &world.plan, error);
}

void bind_plan(World& world) { require(plan_bind(world, nullptr) == OPMUX_OK, "bind"); }

int32_t plan_call(World& world, opmux_error* error) {
  world.call.clear();
  const int32_t outcome = opmux_plan_call(world.plan, world.call.args.data(), 2, error);
  return outcome == OPMUX_OK && !world.call.right() ? -1 : outcome;
}

int32_t plan_call_outside(World& world, opmux_error* error) {
  const opmux_arg args[] = {world.call.args[0], world.other_call.args[1]};
  return opmux_plan_call(world.plan, args, 2, error);
}

int32_t plan_run(World& world, opmux_error* error) {
  const int32_t outcome = opmux_plan_prepare(world.plan, world.call.args.data(), 2, error);
  return outcome == OPMUX_OK ? opmux_plan_run_unchecked(world.plan, error) : outcome;
}

/// A bound plan that must be evaluated again: the policy has changed.
void outdate_plan(World& world) {
  bind_plan(world);
  require(opmux_backend_enable(world.runtime, OPMUX_STR("reference"), 1, nullptr) == OPMUX_OK,
          "enable");
}

int32_t plan_state(World& world, opmux_error* error) {
  uint32_t state = 0;
  opmux_str id{};
  const int32_t outcome = opmux_plan_state(world.plan, &state, error);
  return outcome == OPMUX_OK ? opmux_plan_implementation(world.plan, &id, error) : outcome;
}

int32_t plan_refresh(World& world, opmux_error* error) {
  return opmux_plan_refresh(world.plan, error);
}

int32_t plan_destroy(World& world, opmux_error*) {
  opmux_plan_destroy(std::exchange(world.plan, nullptr));
  return OPMUX_OK;
}

int32_t define(World& world, opmux_error* error) {
  return opmux_define(world.runtime, OPMUX_STR("me.thing(out Tensor y[N], Tensor x[N])"), 0, error);
}

int32_t define_refused(World& world, opmux_error* error) {
  return opmux_define(world.runtime, OPMUX_STR("me.thing(out Tensor y[N], Tensr x[N])"), 0, error);
}

int32_t define_all(World& world, opmux_error* error) {
  const opmux_str schemas[] = {OPMUX_STR("me.first(out Tensor y[N], Tensor x[N])"),
                               OPMUX_STR("me.second(out Tensor y[N], Tensor x[N])"),
                               OPMUX_STR("me.third(out Tensor y[N], Tensor x[N], int k = 1)")};
  const int32_t outcome = opmux_define_all(world.runtime, schemas, 3, 0, error);
  opmux_operator* found = nullptr;
  return outcome == OPMUX_OK
             ? opmux_operator_get(world.runtime, OPMUX_STR("me.third"), &found, error)
             : outcome;
}

int32_t implement(World& world, opmux_error* error) {
  const int32_t outcome =
      implement_silu(world.runtime, Behaviour::computes, &world.registration, error);
  if (outcome == OPMUX_OK) world.runs = "silu_and_mul/mine.v";
  return outcome;
}

/// Registers an implementation with `behaviour` that is preferred to the reference.
template <Behaviour kBehaviour>
void implemented(World& world) {
  require(implement_silu(world.runtime, kBehaviour, &world.registration, nullptr) == OPMUX_OK,
          "implement");
  constexpr bool kComputes = kBehaviour != Behaviour::fails && kBehaviour != Behaviour::declines &&
                             kBehaviour != Behaviour::lacks_memory;
  if (kComputes) world.runs = "silu_and_mul/mine.v";
}

void implemented_and_called(World& world) {
  implemented<Behaviour::computes>(world);
  call_once(world);
}

/// The plan of an implementation that is withdrawn.
void implemented_and_bound(World& world) {
  implemented<Behaviour::computes>(world);
  bind_plan(world);
  call_once(world);
}

int32_t withdraw(World& world, opmux_error* error) {
  world.runs = "silu_and_mul/reference.scalar";
  return opmux_withdraw(std::exchange(world.registration, nullptr), error);
}

/// Withdraws, and checks that neither calls nor the bound plan run the implementation.
int32_t withdraw_bound(World& world, opmux_error* error) {
  const uint64_t before = runs_of_silu();
  const int32_t outcome = withdraw(world, error);
  const int32_t ran = opmux_plan_call(world.plan, world.call.args.data(), 2, nullptr);
  opmux_call_operator(world.op, world.call.args.data(), 2, nullptr);
  if (ran == OPMUX_OK || runs_of_silu() != before) return -1;
  return outcome;
}

int32_t keep(World& world, opmux_error*) {
  opmux_registration_keep(std::exchange(world.registration, nullptr));
  return OPMUX_OK;
}

int32_t switch_backend(World& world, opmux_error* error) {
  const opmux_str name = OPMUX_STR("mine");
  world.runs = "silu_and_mul/reference.scalar";
  const int32_t outcome = opmux_backend_enable(world.runtime, name, 0, error);
  if (outcome == OPMUX_OK) {
    const uint64_t before = runs_of_silu();
    opmux_call_operator(world.op, world.call.args.data(), 2, nullptr);
    if (runs_of_silu() != before) return -1;
  } else {
    world.runs = "silu_and_mul/mine.v";
  }
  return outcome;
}

int32_t tag(World& world, opmux_error* error) {
  uint32_t number = 0;
  return opmux_tag(world.runtime, OPMUX_STR("layer.a.name.longer.than.sixteen"), &number, error);
}

int32_t warm_up(World& world, opmux_error* error) {
  return opmux_runtime_warm_up(world.runtime, error);
}

int32_t tick(World& world, opmux_error* error) {
  world.now_ns += 2'000'000'000;
  return opmux_tick(world.runtime, world.now_ns, error);
}

/// Maintenance has work: retired states and an open breaker.
void give_work(World& world) {
  implemented<Behaviour::computes>(world);
  call_once(world);
  require(opmux_force_breaker(world.runtime, OPMUX_STR("silu_and_mul/mine.v"), OPMUX_BREAKER_OPEN,
                              nullptr) == OPMUX_OK,
          "force_breaker");
  world.runs = "silu_and_mul/reference.scalar";
}

constexpr Scenario kScenarios[] = {
    {"create", nullptr, create_plain, OPMUX_OK, true},
    {"create.environment", nullptr, create_with_environment, OPMUX_OK, true, 0, 11},
    {"create.policy_file", write_policy, create_with_policy_file, OPMUX_OK, true, 0, 11},
    // Threads may refer to a crash journal until the process ends.
    {"create.state", make_state_folder, create_with_state, OPMUX_OK, true, 3, 11},
    {"destroy", call_once, destroy},
    {"operator_get", nullptr, get},
    {"operator_get.unknown", nullptr, get_unknown, 16},
    {"call.first", nullptr, call},
    {"call.again", call_once, call},
    {"call.other_shape", call_once, call_other_shape},
    {"call.refused", nullptr, call_refused, OPMUX_INVALID_ARGUMENT},
    {"call.report", nullptr, call_with_report},
    {"call.constant", make_constant, call_with_constant},
    {"call.fallback", implemented<Behaviour::fails>, call},
    {"call.declined", implemented<Behaviour::declines>, call},
    {"call.resource", implemented<Behaviour::lacks_memory>, call},
    {"call.workspace", implemented<Behaviour::uses_workspace>, call},
    {"call.prepared", implemented<Behaviour::uses_a_prepared_state>, call},
    {"call.parallel", implemented<Behaviour::uses_threads>, call},
    {"call.is_available", implemented<Behaviour::asks_whether_it_is_available>, call},
    {"call.nested", implemented<Behaviour::calls_an_operator>, call},
    {"constant.create", nullptr, constant_create},
    {"constant.changed", make_constant, constant_changed},
    {"instance.call", nullptr, instance_call},
    {"plan.bind", nullptr, plan_bind},
    {"plan.call", bind_plan, plan_call},
    {"plan.call.outside", bind_plan, plan_call_outside, OPMUX_INVALID_ARGUMENT},
    {"plan.call.outdated", outdate_plan, plan_call},
    {"plan.run", bind_plan, plan_run},
    {"plan.state", outdate_plan, plan_state},
    {"plan.refresh", bind_plan, plan_refresh},
    {"plan.destroy", bind_plan, plan_destroy},
    {"define", nullptr, define},
    {"define.refused", nullptr, define_refused, OPMUX_INVALID_ARGUMENT},
    {"define_all", nullptr, define_all},
    {"implement", nullptr, implement},
    {"implement.called", call_once, implement},
    {"withdraw", implemented_and_called, withdraw},
    {"withdraw.bound", implemented_and_bound, withdraw_bound},
    {"registration_keep", implemented_and_called, keep},
    {"backend_enable", implemented_and_called, switch_backend},
    {"tag", nullptr, tag},
    {"warm_up", nullptr, warm_up},
    {"tick", give_work, tick},
};

}  // namespace

std::span<const Scenario> c_scenarios() { return kScenarios; }

}  // namespace opmux::test
