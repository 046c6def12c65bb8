// The functions of the C API about policies, locks, health and reports.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels.hpp"
#include "scenario.hpp"

namespace opmux::test {
namespace {

const opmux_str kText = OPMUX_STR(
    "opmux: 1\n"
    "rules:\n"
    "  - {name: a, op: silu_and_mul, prefer: [reference], when: 'rows < 500'}\n"
    "  - {name: b, op: rms_norm, deny: ['vendor:acme'], reason: a reason of some length}\n");
const opmux_str kFile = OPMUX_STR("a_policy_file_with_a_long_name.yaml");

void call_once(World& world) {
  require(opmux_call_operator(world.op, world.call.args.data(), 2, nullptr) == OPMUX_OK, "call");
}

/// A policy that prefers the reference.
int32_t with_policy(int32_t (*use)(opmux_runtime*, const opmux_policy*, opmux_error*), World& world,
                    opmux_error* error) {
  const opmux_str first[] = {OPMUX_STR("reference"), OPMUX_STR("vendor:some_vendor_or_other")};
  opmux_policy policy{};
  policy.struct_size = sizeof policy;
  policy.prefer = {first, std::size(first)};
  return use(world.runtime, &policy, error);
}

int32_t set(World& world, opmux_error* error) {
  return with_policy(opmux_policy_set, world, error);
}

/// Denies the implementation that runs. Where that succeeds, it may not run any more.
int32_t deny(World& world, opmux_error* error) {
  const opmux_str denied[] = {OPMUX_STR("vendor:me")};
  opmux_policy policy{};
  policy.struct_size = sizeof policy;
  policy.deny = {denied, 1};
  const int32_t outcome = opmux_policy_set(world.runtime, &policy, error);
  world.runs = outcome == OPMUX_OK ? "silu_and_mul/reference.scalar" : "silu_and_mul/mine.v";
  if (outcome != OPMUX_OK) return outcome;
  const uint64_t before = runs_of_silu();
  opmux_call_operator(world.op, world.call.args.data(), 2, nullptr);
  opmux_plan_call(world.plan, world.call.args.data(), 2, nullptr);
  return runs_of_silu() == before ? OPMUX_OK : -1;
}

void implemented_and_bound(World& world) {
  require(
      implement_silu(world.runtime, Behaviour::computes, &world.registration, nullptr) == OPMUX_OK,
      "implement");
  world.runs = "silu_and_mul/mine.v";
  require(opmux_plan_bind(world.op, world.call.args.data(), 2, 0, &world.plan, nullptr) == OPMUX_OK,
          "bind");
  call_once(world);
}

void set_first(World& world) { require(set(world, nullptr) == OPMUX_OK, "policy_set"); }
int32_t reset(World& world, opmux_error* error) { return opmux_policy_reset(world.runtime, error); }

int32_t load(World& world, opmux_error* error) {
  return opmux_policy_load(world.runtime, kText, kFile, error);
}

int32_t load_refused(World& world, opmux_error* error) {
  return opmux_policy_load(world.runtime, OPMUX_STR("opmux: 1\nrules: [{nam: a}]\n"), kFile, error);
}

void load_twice(World& world) {
  require(load(world, nullptr) == OPMUX_OK, "policy_load");
  require(opmux_policy_load(world.runtime, OPMUX_STR("opmux: 1\nrules: []\n"), kFile, nullptr) ==
              OPMUX_OK,
          "policy_load");
}

int32_t rollback(World& world, opmux_error* error) {
  return opmux_policy_rollback(world.runtime, error);
}

int32_t check(World& world, opmux_error* error) {
  return opmux_policy_check(world.runtime, kText, kFile, 0, world.text.data(), world.text.size(),
                            &world.size, error);
}

int32_t check_condition(World&, opmux_error* error) {
  return opmux_condition_check(OPMUX_STR("H % 64 == 0 && rows > 8 && dtype(x) == \"bf16\""), error);
}

int32_t add_listener(World& world, opmux_error* error) {
  return opmux_policy_on_change(
      world.runtime, [](void*, const opmux_policy_change*) {}, nullptr, error);
}

int32_t add_validator(World& world, opmux_error* error) {
  return opmux_policy_add_validator(
      world.runtime,
      [](void*, const opmux_rule_info*, size_t, opmux_error*) -> int32_t { return OPMUX_OK; },
      nullptr, error);
}

int32_t push_scope(World& world, opmux_error* error) {
  const int32_t outcome = with_policy(opmux_scope_push, world, error);
  if (outcome != OPMUX_OK) return outcome;
  const int32_t called = opmux_call_operator(world.op, world.call.args.data(), 2, error);
  const int32_t popped = opmux_scope_pop(called == OPMUX_OK ? error : nullptr);
  return called == OPMUX_OK ? popped : called;
}

int32_t push_two_scopes(World& world, opmux_error* error) {
  const opmux_str required[] = {OPMUX_STR("reference")};
  opmux_policy policy{};
  policy.struct_size = sizeof policy;
  policy.require = {required, 1};
  const int32_t outcome = opmux_scope_push(world.runtime, &policy, error);
  if (outcome != OPMUX_OK) return outcome;
  const int32_t inner = push_scope(world, error);
  const int32_t popped = opmux_scope_pop(inner == OPMUX_OK ? error : nullptr);
  return inner == OPMUX_OK ? popped : inner;
}

int32_t push_ambient(World& world, opmux_error* error) {
  const int32_t outcome = opmux_ambient_push(OPMUX_AMBIENT_DETERMINISTIC, error);
  if (outcome != OPMUX_OK) return outcome;
  const int32_t called = opmux_call_operator(world.op, world.call.args.data(), 2, error);
  const int32_t popped = opmux_scope_pop(called == OPMUX_OK ? error : nullptr);
  return called == OPMUX_OK ? popped : called;
}

int32_t pop_without_push(World&, opmux_error* error) { return opmux_scope_pop(error); }

int32_t set_selector(World& world, opmux_error* error) {
  const opmux_str reads[] = {OPMUX_STR("rows")};
  opmux_selector selector{};
  selector.struct_size = sizeof selector;
  selector.reads = {reads, 1};
  selector.pick = [](void*, const opmux_selection*) -> int64_t { return -1; };
  const int32_t outcome = opmux_selector_set(world.runtime, &selector, error);
  if (outcome != OPMUX_OK) return outcome;
  return opmux_call_operator(world.op, world.call.args.data(), 2, error);
}

int32_t freeze(World& world, opmux_error* error) {
  return opmux_runtime_freeze(world.runtime, error);
}

void write_lock(World& world) {
  call_once(world);
  require(opmux_runtime_lock(world.runtime, world.text.data(), world.text.size(), &world.size,
                             nullptr) == OPMUX_OK,
          "lock");
  world.lockfile.assign(world.text.data(), world.size);
}

int32_t freeze_by(World& world, opmux_error* error) {
  return opmux_runtime_freeze_by(world.runtime, opmux_str_of(world.lockfile.c_str()),
                                 OPMUX_STR("a_lockfile_with_a_long_name.lock"), error);
}

int32_t lock(World& world, opmux_error* error) {
  return opmux_runtime_lock(world.runtime, world.text.data(), world.text.size(), &world.size,
                            error);
}

int32_t decide(World& world, opmux_error* error) {
  return opmux_decide(world.op, world.call.args.data(), 2, world.text.data(), world.text.size(),
                      &world.size, error);
}

template <uint32_t kFormat>
int32_t explain(World& world, opmux_error* error) {
  return opmux_explain(world.op, world.call.args.data(), 2, kFormat, world.text.data(),
                       world.text.size(), &world.size, error);
}

/// A function that writes a report about the runtime.
template <int32_t (*kWrite)(opmux_runtime*, char*, size_t, size_t*, opmux_error*)>
int32_t report(World& world, opmux_error* error) {
  return kWrite(world.runtime, world.text.data(), world.text.size(), &world.size, error);
}

void implemented_and_called(World& world) {
  require(
      implement_silu(world.runtime, Behaviour::computes, &world.registration, nullptr) == OPMUX_OK,
      "implement");
  world.runs = "silu_and_mul/mine.v";
  call_once(world);
}

/// Opens the breaker of the implementation that runs. Where that succeeds, calls fall back.
int32_t force_breaker(World& world, opmux_error* error) {
  const int32_t outcome = opmux_force_breaker(world.runtime, OPMUX_STR("silu_and_mul/mine.v"),
                                              OPMUX_BREAKER_ISOLATE, error);
  world.runs = outcome == OPMUX_OK ? "silu_and_mul/reference.scalar" : "silu_and_mul/mine.v";
  return outcome;
}

int32_t on_breaker(World& world, opmux_error* error) {
  return opmux_on_breaker(world.runtime, [](void*, const opmux_breaker_event*) {}, nullptr, error);
}

int32_t stats(World& world, opmux_error* error) {
  return opmux_stats_visit(world.runtime, [](void*, const opmux_stats*) {}, nullptr, error);
}

int32_t clear_quarantine(World& world, opmux_error* error) {
  uint64_t cleared = 0;
  return opmux_clear_quarantine(world.runtime, OPMUX_STR("silu_and_mul/mine.v"), &cleared, error);
}

int32_t process_states(World& world, opmux_error* error) {
  return opmux_process_states(opmux_str_of(world.state.c_str()), world.text.data(),
                              world.text.size(), &world.size, error);
}

/// A runtime with a folder for recorded calls, and an implementation that fails.
void record_calls(World& world) {
  world.destroy_runtime();
  opmux_record_options record{};
  record.struct_size = sizeof record;
  record.flags = OPMUX_RECORD_INPUTS;
  record.folder = opmux_str_of(world.record.c_str());
  opmux_options options{};
  options.struct_size = sizeof options;
  options.flags = OPMUX_OPTION_NO_BACKENDS;
  options.record = &record;
  require(opmux_runtime_create(&options, &world.runtime, nullptr) == OPMUX_OK, "create");
  require(
      opmux_operator_get(world.runtime, OPMUX_STR("silu_and_mul"), &world.op, nullptr) == OPMUX_OK,
      "operator_get");
  require(implement_silu(world.runtime, Behaviour::fails, &world.registration, nullptr) == OPMUX_OK,
          "implement");
}

int32_t record_call(World& world, opmux_error* error) {
  return opmux_call_operator(world.op, world.call.args.data(), 2, error);
}

void record_and_find(World& world) {
  record_calls(world);
  call_once(world);
  for (const auto& entry : std::filesystem::directory_iterator(world.record)) {
    if (entry.is_regular_file()) world.lockfile = entry.path().string();
  }
  require(!world.lockfile.empty(), "recorded file");
}

int32_t replay(World& world, opmux_error* error) {
  opmux_replay_options options{};
  options.struct_size = sizeof options;
  return opmux_replay(world.runtime, opmux_str_of(world.lockfile.c_str()), &options,
                      world.text.data(), world.text.size(), &world.size, error);
}

constexpr Scenario kScenarios[] = {
    {"policy.set", call_once, set},
    {"policy.set.deny", implemented_and_bound, deny},
    {"policy.reset", set_first, reset},
    {"policy.load", call_once, load},
    {"policy.load.refused", nullptr, load_refused, OPMUX_INVALID_ARGUMENT},
    {"policy.rollback", load_twice, rollback},
    {"policy.check", nullptr, check},
    {"policy.condition_check", nullptr, check_condition},
    {"policy.on_change", nullptr, add_listener},
    {"policy.add_validator", nullptr, add_validator},
    {"scope", nullptr, push_scope},
    {"scope.nested", call_once, push_two_scopes},
    {"scope.ambient", nullptr, push_ambient},
    {"scope.pop", nullptr, pop_without_push, OPMUX_INVALID_ARGUMENT},
    {"selector", call_once, set_selector},
    {"freeze", call_once, freeze},
    {"freeze_by", write_lock, freeze_by},
    {"lock", call_once, lock},
    {"decide", nullptr, decide},
    {"explain.text", nullptr, explain<OPMUX_FORMAT_TEXT>},
    {"explain.json", nullptr, explain<OPMUX_FORMAT_JSON>},
    {"list_operators", call_once, report<opmux_list_operators>},
    {"list_plugins", nullptr, report<opmux_list_plugins>},
    {"list_settings", nullptr, report<opmux_list_settings>},
    {"list_tuning", nullptr, report<opmux_list_tuning>},
    {"list_proposals", nullptr, report<opmux_list_proposals>},
    {"policy_state", load_twice, report<opmux_policy_state>},
    {"health", implemented_and_called, report<opmux_health>},
    {"force_breaker", implemented_and_called, force_breaker},
    {"on_breaker", nullptr, on_breaker},
    {"stats", implemented_and_called, stats},
    {"list_quarantine", nullptr, report<opmux_list_quarantine>},
    {"clear_quarantine", nullptr, clear_quarantine},
    {"crash_journal", nullptr, report<opmux_crash_journal>},
    {"process_states", nullptr, process_states},
    {"recordings", record_calls, report<opmux_recordings>},
    {"record", record_calls, record_call},
    {"replay", record_and_find, replay},
};

}  // namespace

std::span<const Scenario> policy_scenarios() { return kScenarios; }

}  // namespace opmux::test
