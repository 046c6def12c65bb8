// Runs wrong and correct kernels with the shadow check on calls that the suite generates.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "conformance/shaper.hpp"
#include "seeded_bugs/seeded.hpp"

namespace opmux::seeded {
namespace {

using conformance::Case;
using conformance::CaseArgument;
using conformance::CaseTensor;

/// Memory for one tensor with a large margin on both sides, so that out-of-bounds accesses do not
/// fault. Untouched pages cost nothing.
class Field {
 public:
  static constexpr size_t kRoom = size_t{32} << 20, kMost = size_t{64} << 20;

  Field() : memory_(static_cast<std::byte*>(std::calloc(1, kMost + 2 * kRoom)), &std::free) {}
  std::byte* begin() const { return memory_.get() + kRoom; }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
};

/// A case in memory; its outputs contain the results of earlier calls.
class Laid {
 public:
  Laid(const Case& c, std::vector<Field>& fields)
      : tensors_(c.arguments.size()), args_(c.arguments.size()) {
    if (fields.size() < args_.size()) fields.resize(args_.size());
    for (size_t i = 0; i < args_.size(); ++i) lay(c.arguments[i], i, c.number, fields[i]);
  }
  Laid(const Laid&) = delete;
  Laid& operator=(const Laid&) = delete;
  std::span<const opmux_arg> arguments() const { return args_; }

 private:
  void lay(const CaseArgument& from, size_t i, uint64_t number, const Field& field) {
    opmux_arg& arg = args_[i];
    arg.tag = from.present ? static_cast<uint32_t>(from.info->type) : OPMUX_ARG_NONE;
    if (from.info->type == ArgTag::floating) {
      arg.value.f64 = from.f64;
    } else if (!from.is_tensor()) {
      arg.value.i64 = from.i64;
    } else if (from.present) {
      // At any multiple of the element size, as in the suite.
      const auto size = static_cast<size_t>(from.tensor.dtype.size_bytes());
      std::byte* const first = field.begin() + (number + i) % 8 * size;
      tensors_[i] = TensorView(first, from.tensor.dtype, from.tensor.shape, from.tensor.strides);
      arg.value.tensor = &tensors_[i].c();
      if (from.read()) fill(from.tensor, first);
    }
  }
  static void fill(const CaseTensor& tensor, std::byte* first) {
    const auto size = static_cast<size_t>(tensor.dtype.size_bytes());
    const int64_t count = tensor.shape.empty() ? 1 : tensor.shape.back();
    const int64_t stride = tensor.shape.empty() ? 1 : tensor.strides.back();
    const std::byte* from = tensor.packed.data();
    conformance::for_each_run(tensor, [&](int64_t offset) {
      for (int64_t e = 0; e < count; ++e, from += size)
        std::memcpy(first + (offset + e * stride) * static_cast<int64_t>(size), from, size);
    });
  }

  std::vector<TensorView> tensors_;
  std::vector<opmux_arg> args_;
};

/// Calls of one operator as the suite generates them, without invalid calls.
class Calls {
 public:
  Calls(const Operator& op, const std::string& name, uint64_t seed, size_t count)
      : op_(op), infos_(op.arguments()) {
    const conformance::Shaper& shaper = conformance::find_shaper(name);
    for (uint64_t number = 0; cases_.size() < count && number < 4 * count; ++number) {
      conformance::Draft draft(name, infos_, seed, number);
      if (shaper.shape != nullptr) shaper.shape(draft);
      draft.make_tensors();
      if (shaper.fill != nullptr) shaper.fill(draft);
      Case drawn = draft.finish();
      if (!drawn.invalid && !drawn.empty()) cases_.push_back(std::move(drawn));
    }
  }
  /// Makes one call; false if it failed, for example because the implementation declined it.
  bool run(size_t number) {
    static std::vector<Field> fields;
    const Laid laid(cases_[number % cases_.size()], fields);
    return op_.call_arguments(laid.arguments()).ok();
  }
  size_t size() const { return cases_.size(); }

 private:
  Operator op_;
  std::vector<ArgumentInfo> infos_;
  std::vector<Case> cases_;
};

Policy serving(const std::string& implementation, int every) {
  Policy policy;
  policy.rules = {{.op = implementation.substr(0, implementation.find('/')),
                   .require = {"impl:" + implementation}}};
  policy.shadow = {
      .every = every, .on_mismatch = OnMismatch::report, .share = 1.0, .memory_mb = 64};
  return policy;
}

Options for_service(bool backends) {
  Options options;
  options.environment.emplace();
  options.backends = backends;
  options.sources.own_thread = false;
  return options;
}

/// A runtime with an adjustable sampling rate of the shadow check.
class Service {
 public:
  explicit Service(bool backends = false)
      : runtime(Runtime::create(for_service(backends)).value()) {}

  void serve(const std::string& implementation, int every) {
    const Status status = runtime.policy().set(serving(implementation, every));
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  ShadowInfo look(const std::string& implementation) {
    runtime.tick(time_ += std::chrono::seconds(1));
    for (ShadowInfo& info : runtime.health().report().shadow.implementations) {
      if (info.implementation == implementation) return std::move(info);
    }
    return {};
  }

  Runtime runtime;

 private:
  std::chrono::nanoseconds time_ = std::chrono::hours(1);
};

// Bugs that do not change an output of a valid call beyond the tolerance. All others do.
const std::set<std::string_view> kNoValue = {
    "written_past",
    "written_past_7_of_8",
    "written_past_15_of_16",
    "residual_written_past",
    "read_past_14_of_16",
    "read_past_31_of_32",
    "read_past_63_of_64",
    "weight_read_past_63_of_64",
    "input_changed",
    "input_changed_for_two_rows",
    // Within the tolerance.
    "last_bit_wavers",
    "batch_changes_bits",
    // Only with concurrent calls.
    "threads_share_a_counter",
    "callers_share_a_row",
    // With data that the operator defines as invalid.
    "invalid_positions_clamped",
    "negative_ids_count_from_the_end",
    "slots_too_large_skipped",
    "unknown_ids_give_row_0",
    "writes_before_it_checks",
};

constexpr int kEvery = 16;
constexpr size_t kCallsPerBug = 10'000, kBetween = 256;

/// The number of calls until the bug is found; kCallsPerBug + 1 if it is not.
size_t calls_until_seen(Service& service, const Seeded& seeded, Calls& calls, ShadowInfo& seen) {
  service.serve(seeded.id(), kEvery);
  for (size_t call = 0; call < kCallsPerBug;) {
    for (size_t end = call + kBetween; call < end; ++call) (void)calls.run(call);
    seen = service.look(seeded.id());
    if (seen.mismatches != 0) return call;
  }
  return kCallsPerBug + 1;
}

void see_bugs(size_t stride, size_t cases, size_t least) {
  std::vector<Seeded> kernels;
  for (const Bug& bug : all_bugs()) {
    if (!kNoValue.contains(bug.name)) kernels.emplace_back(bug);
  }
  const size_t all = kernels.size();
  Service service;
  implement(service.runtime, kernels);
  std::map<std::string_view, Calls> calls;
  size_t tried = 0, found = 0, compared = 0;
  for (size_t i = 0; i < kernels.size(); i += stride) {
    const std::string op(kernels[i].bug.op);
    const auto& drawn =
        calls.try_emplace(kernels[i].bug.op, service.runtime.op(op).value(), op, 5, cases).first;
    ShadowInfo seen;
    const size_t took = calls_until_seen(service, kernels[i], drawn->second, seen);
    ++tried;
    found += seen.mismatches != 0 ? 1 : 0;
    compared += seen.compared;
    if (seen.mismatches != 0) {
      std::printf("  %-62s %6zu calls: %s\n", kernels[i].id().c_str(), took,
                  seen.last->text.c_str());
      EXPECT_THAT(seen.last->element, testing::ContainsRegex("^[a-z_]+\\[[0-9,]*\\]$"));
    } else {
      std::printf("  %-62s NOT SEEN\n", kernels[i].id().c_str());
    }
  }
  std::printf("seen %zu of %zu bugs that change a value, %zu calls compared\n", found, tried,
              compared);
  EXPECT_GE(all, 90u);
  EXPECT_GE(tried, least);
  EXPECT_GE(static_cast<double>(found), 0.95 * static_cast<double>(tried));
}

TEST(ShadowCheck, bugs_are_seen) { see_bugs(15, 1000, 13); }

TEST(ShadowCheck, bugs_are_seen_at_length) { see_bugs(1, 1000, 90); }

struct Served {
  uint64_t calls = 0, compared = 0, alarms = 0;
};

/// Calls one correct implementation until `calls` calls succeeded or no case is left.
void serve_right(Service& service, const std::string& op, const std::string& id, size_t cases,
                 size_t calls, Served& sum) {
  service.serve(id, kEvery);
  Calls drawn(service.runtime.op(op).value(), op, 77, cases);
  size_t well = 0;
  for (size_t call = 0; well < calls && call < 4 * calls; ++call) {
    well += drawn.run(call) ? 1 : 0;
    if (call % kBetween == 0) (void)service.look(id);
  }
  const ShadowInfo info = service.look(id);
  sum.calls += well;
  sum.compared += info.compared;
  sum.alarms += info.mismatches;
  if (info.mismatches != 0)
    std::printf("FALSE ALARM %s: %s\n", id.c_str(), info.last->text.c_str());
}

/// Calls all available implementations, `calls` times in total.
void serve_all_right(size_t cases, size_t calls) {
  Service service(true);
  std::vector<Seeded> kernels;
  for (const Bug& right : right_kernels()) kernels.emplace_back(right);
  implement(service.runtime, kernels);
  std::vector<std::pair<std::string, std::string>> right;  // Pairs of operator and implementation.
  for (const OperatorInfo& op : service.runtime.list()) {
    for (const ImplementationInfo& one : op.implementations) {
      if (one.available && one.kind != "reference" && !one.own_memory)
        right.emplace_back(op.name, one.id);
    }
  }
  Served sum;
  // Some implementations have fewer cases than their share; the others get the rest.
  for (size_t i = 0; i < right.size(); ++i) {
    const size_t left = calls - std::min<size_t>(calls, sum.calls);
    serve_right(service, right[i].first, right[i].second, cases, left / (right.size() - i) + 1,
                sum);
  }
  std::printf("%lu false alarms in %lu calls of %zu right implementations, %lu of them compared\n",
              static_cast<unsigned long>(sum.alarms), static_cast<unsigned long>(sum.calls),
              right.size(), static_cast<unsigned long>(sum.compared));
  EXPECT_EQ(sum.alarms, 0u);
  EXPECT_GE(sum.calls, calls);
  EXPECT_GE(sum.compared, calls / 20);
}

TEST(ShadowCheck, right_kernels_are_not) { serve_all_right(50, 4'000); }

TEST(ShadowCheck, right_kernels_are_not_at_length) { serve_all_right(2000, 1'000'000); }

}  // namespace
}  // namespace opmux::seeded
