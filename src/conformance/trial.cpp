#include "conformance/trial.hpp"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <latch>
#include <mutex>
#include <thread>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"
#include "verify/bounds.hpp"

namespace opmux::conformance {
namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kCount = sizeof kFaults / sizeof kFaults[0];

thread_local sigjmp_buf* volatile way_out = nullptr;

std::mutex mutex;
int guards = 0;
struct sigaction earlier_handlers[kCount];

void on_fault(int fault) {
  if (way_out != nullptr) siglongjmp(*way_out, 1);
  // The fault is not inside survives(): restore the previous handler and let the instruction fault
  // again.
  for (int i = 0; i < kCount; ++i) {
    if (kFaults[i] == fault) sigaction(fault, &earlier_handlers[i], nullptr);
  }
}

}  // namespace

CrashGuard::CrashGuard() {
  const std::lock_guard lock(mutex);
  if (guards++ > 0) return;
  struct sigaction action{};
  action.sa_handler = on_fault;
  action.sa_flags = SA_NODEFER | SA_ONSTACK;
  for (int i = 0; i < kCount; ++i) sigaction(kFaults[i], &action, &earlier_handlers[i]);
}

CrashGuard::~CrashGuard() {
  const std::lock_guard lock(mutex);
  if (--guards > 0) return;
  for (int i = 0; i < kCount; ++i) sigaction(kFaults[i], &earlier_handlers[i], nullptr);
}

bool survives(void (*fn)(void* context), void* context) {
  sigjmp_buf here;
  sigjmp_buf* const outer = way_out;
  if (sigsetjmp(here, 1) != 0) {
    way_out = outer;
    return false;
  }
  way_out = &here;
  fn(context);
  way_out = outer;
  return true;
}

namespace {

// Fill patterns: NaN in every float type, and a plausible number. A result that depends on them
// shows a read of uninitialised memory.
constexpr std::byte kPoison{0xff}, kPlausible{0x3f};

// One thread; check_threads() lends more.
constexpr CallOptions kAlone{.max_threads = 1};

constexpr int kRounds = 12;  ///< calls of each of two concurrent callers

bool refusal(const Status& status) {
  return status.code() == Code::no_candidate || status.code() == Code::declined;
}

/// Bitwise comparison, except that all NaNs are equal.
bool same_elements(const std::vector<std::byte>& a, const std::vector<std::byte>& b, DType dtype) {
  if (a == b) return true;
  const auto size = static_cast<size_t>(dtype.size_bytes());
  for (size_t i = 0; i < a.size(); i += size) {
    if (std::equal(&a[i], &a[i] + size, &b[i])) continue;
    const double x = verify::read_element(&a[i], dtype), y = verify::read_element(&b[i], dtype);
    if (!(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

Random random_of(const Case& c) { return Random(c.seed, c.op, ~c.number); }

}  // namespace

Policy Trial::policy() const {
  Policy policy;
  policy.require = {"impl:" + info_->id};
  policy.strict = true;
  return policy;
}

void Trial::judge_outcome(const Case& c, const Status& status, const CallReport& report,
                          const Placed& placed, Run& run) const {
  const bool expected_failure = c.invalid && status.code() == Code::invalid_argument;
  if (refusal(status)) {
    run.verdict.refused = true;
  } else if (c.invalid && status.ok()) {
    run.verdict.problem = {"outcome", "it accepted invalid data"};
  } else if (!status.ok() && !expected_failure) {
    run.verdict.problem = {"outcome", status.to_string()};
  } else if (report.implementation != info_->id && !c.empty()) {
    run.verdict.problem = {"other_ran", "'" + report.implementation + "' ran instead"};
  } else if (!report.fell_back && !report.reason.empty()) {
    run.verdict.problem = {"left_state", report.reason};
  }
  const bool nothing_written =
      status.code() == Code::declined || (claims(OPMUX_IMPL_ATOMIC_OUTPUTS) && !status.ok());
  if (!run.verdict.problem && nothing_written && !placed.untouched()) {
    run.verdict.problem = {"not_atomic", "it wrote to a tensor but returned " + status.to_string()};
  }
  run.done = status.ok() && !run.verdict.problem;
}

void Trial::find_sides() {
  for (Place* place : {&place_, &other_place_}) {
    Result<DeviceSide> side = DeviceSide::create(*runtime_, info_->backend);
    if (side) {
      place->side.emplace(std::move(*side));
    } else {
      no_device_ = side.error();
    }
  }
}

Trial::Run Trial::call(const Case& c, std::byte pattern, CallOptions options, Place& place) {
  Run run;
  DeviceSide* const side = place.side ? &*place.side : nullptr;
  Placed placed(place.arenas, c, pattern, side);
  if (const Status& ready = no_device_.ok() ? placed.ready() : no_device_; !ready.ok()) {
    run.verdict.problem = {"outcome", ready.to_string()};
    return run;
  }
  if (side != nullptr) options.stream = side->stream();
  Status status;
  CallReport report;
  const auto body = [&] {
    status = call_afresh(op_, info_->needs_instance, placed.arguments(), options, &report);
  };
  if (!survives(body)) {
    run.verdict.crashed = true;
    run.verdict.problem = {"crash", "it accessed memory outside of its tensors, or trapped"};
    return run;
  }
  if (side != nullptr) {
    // An error that the device reports after the call returned counts as the call's outcome.
    const Status later = placed.fetch();
    if (status.ok()) status = later;
  }
  judge_outcome(c, status, report, placed, run);
  if (!run.done) return run;
  run.verdict.problem = placed.damage();
  run.done = !run.verdict.problem;
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    if (c.arguments[i].written()) run.outputs.push_back(placed.elements(i));
  }
  return run;
}

bool Trial::same(const Case& c, const Outputs& a, const Outputs& b) const {
  size_t output = 0;
  for (const CaseArgument& argument : c.arguments) {
    if (!argument.written()) continue;
    if (!same_elements(a[output], b[output], argument.tensor.dtype)) return false;
    ++output;
  }
  return true;
}

std::optional<Problem> Trial::compare(const Case& c, const Expected& expected, const Run& first,
                                      const Run& second, const char* kind, const char* what) const {
  if (!second.done) return second.verdict.problem;
  if (claims(OPMUX_IMPL_DETERMINISTIC)) {
    if (!same(c, first.outputs, second.outputs)) return Problem{kind, what};
    return {};
  }
  auto problem = judge(c, expected, second.outputs);
  if (problem) problem->kind = kind;
  return problem;
}

CaseResult Trial::check_again(const Case& c, const Expected& expected, const Run& first) {
  const Run second = call(c, kPlausible, kAlone, place_);
  CaseResult verdict = second.verdict;
  verdict.problem =
      compare(c, expected, first, second, "uninitialised",
              "the results depend on memory that is uninitialised or outside of the tensors");
  if (!verdict.problem || !second.done) return verdict;
  const Run third = call(c, kPoison, kAlone, place_);
  if (third.done && !same(c, first.outputs, third.outputs)) {
    verdict.problem = {"nondeterministic", "the same call gave different bits the second time"};
  }
  return verdict;
}

CaseResult Trial::check_threads(const Case& c, const Expected& expected, const Run& first) {
  Pool pool;
  const Run second = call(c, kPoison, pool.options(), place_);
  CaseResult verdict = second.verdict;
  verdict.problem = compare(c, expected, first, second, "threads",
                            "several threads gave different bits than one thread");
  if (pool.crashed()) verdict.problem = {"crash", "it crashed on a thread of the caller's pool"};
  return verdict;
}

CaseResult Trial::check_batch(const Case& c, const Run& first) {
  const std::string_view batch = shaper_->batch;
  const int64_t rows = batch_size(c, batch);
  // The rows of a tensor with any shape are unknown.
  const bool open = std::ranges::any_of(c.arguments, [](const CaseArgument& argument) {
    return argument.is_tensor() && argument.present && argument.info->any_shape;
  });
  if (rows < 2 || open) return {};
  const int64_t row = random_of(c).below(rows);
  const Case single = alone(c, batch, row);
  const Run second = call(single, kPoison, {}, place_);
  CaseResult verdict = second.verdict;
  verdict.refused = false;  // it may accept many rows and refuse one
  if (!second.done) return verdict;
  Outputs part;
  for (const CaseArgument& argument : c.arguments) {
    if (!argument.written()) continue;
    part.push_back(row_of(argument, c, batch, row, first.outputs[part.size()]));
  }
  if (!same(single, part, second.outputs)) {
    verdict.problem = {"batch_variant", "row " + std::to_string(row) +
                                            " has different bits alone than in the batch"};
  }
  return verdict;
}

/// Two threads call concurrently and repeatedly, each with a separate case and separate memory.
CaseResult Trial::check_callers(const Case& c, const Expected& expected, const Run& first) {
  std::latch start{2};
  CaseResult verdicts[2];
  const auto caller = [&](const Case& mine, const Expected& right, const Run& before, Place& place,
                          CaseResult& verdict) {
    const PolicyScope scope(*runtime_, policy());
    start.arrive_and_wait();
    for (int round = 0; round < kRounds && !verdict.problem; ++round) {
      const Run run = call(mine, kPoison, {}, place);
      verdict.crashed = run.verdict.crashed;
      verdict.problem = compare(mine, right, before, run, "threads",
                                "two concurrent calls interfered with each other");
    }
  };
  std::thread beside(
      [&] { caller(*other_, *other_expected_, other_first_, other_place_, verdicts[1]); });
  caller(c, expected, first, place_, verdicts[0]);
  beside.join();
  if (!verdicts[0].problem) verdicts[0].problem = verdicts[1].problem;
  return verdicts[0];
}

void Trial::remember(const Case& c, const Expected& expected, Run first) {
  other_ = &c;
  other_expected_ = &expected;
  other_first_ = std::move(first);
}

CaseResult Trial::run(const Case& c, const Expected& expected) {
  const Run first = call(c, kPoison, kAlone, place_);
  if (!first.done) return first.verdict;
  CaseResult verdict;
  verdict.problem = judge(c, expected, first.outputs);
  if (verdict.problem || c.empty()) return verdict;
  const auto stop = [&](CaseResult&& next) {
    verdict = std::move(next);
    return verdict.problem.has_value();
  };
  Random random = random_of(c);
  const bool large = c.arguments[0].tensor.elements() > 8192;
  if (stop(check_again(c, expected, first))) return verdict;
  if ((large || random.chance(30)) && stop(check_threads(c, expected, first))) return verdict;
  if (claims(OPMUX_IMPL_BATCH_INVARIANT) && stop(check_batch(c, first))) return verdict;
  if (!claims(OPMUX_IMPL_SERIAL) && other_ != nullptr && random.chance(10) &&
      stop(check_callers(c, expected, first))) {
    return verdict;
  }
  remember(c, expected, first);
  return verdict;
}

}  // namespace opmux::conformance
