#include "engine_call.hpp"

#include <array>
#include <chrono>
#include <optional>

#include "call_record.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "report.hpp"

namespace opmux::python {
namespace {

/// The engine's entry points for arguments in registers, by number of tensors and of scalars.
using Words = Status::Detail* (*)(dispatch::OperatorSlot&, uint64_t, uint64_t, uint64_t, uint64_t,
                                  uint64_t) noexcept;
using PlanWords = Status::Detail* (*)(dispatch::BoundPlan&, uint64_t, uint64_t, uint64_t, uint64_t,
                                      uint64_t) noexcept;

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is the name of a template
#define OPMUX_ENTRIES(name)                                                                        \
  {                                                                                                \
    {nullptr, nullptr, nullptr, nullptr}, {name<1, 0>, name<1, 1>, name<1, 2>, name<1, 3>},        \
        {name<2, 0>, name<2, 1>, name<2, 2>, nullptr}, {name<3, 0>, name<3, 1>, nullptr, nullptr}, \
    {                                                                                              \
      name<4, 0>, nullptr, nullptr, nullptr                                                        \
    }                                                                                              \
  }
constexpr Words kCallWords[5][4] = OPMUX_ENTRIES(dispatch::call_words);
constexpr PlanWords kPlanWords[5][4] = OPMUX_ENTRIES(detail::call_plan_words);
#undef OPMUX_ENTRIES
// NOLINTEND(bugprone-macro-parentheses)

template <class Entry, class Target>
Status::Detail* in_words(const Entry (&entries)[5][4], Target& target, const ArgumentFrame& frame) {
  const uint32_t scalars = frame.site.count() - frame.tensors;
  const auto word = [&](size_t i) { return std::bit_cast<uint64_t>(frame.values[i]); };
  return entries[frame.tensors][scalars](target, frame.site.word(), word(0), word(1), word(2),
                                         word(3));
}

/// A call of the operator, with and without options.
struct OfOperator {
  dispatch::OperatorSlot& slot;
  const ArgumentFrame& frame;

  Status::Detail* enter() const {
    if (frame.words_possible) return in_words(kCallWords, slot, frame);
    return dispatch::call(slot, frame.site, frame.values);
  }
  Status::Detail* enter_with(const CallOptions& options, CallReport* report) const {
    return detail::call_with(slot, frame.site, frame.values, options, report);
  }
};

/// A call through an instance, which passes the arguments that the instance does not fix.
struct OfInstance {
  OfInstance(const runtime::OperatorInstance& through, const std::vector<uint8_t>& passed,
             const ArgumentFrame& frame)
      : instance(through) {
    for (const uint8_t i : passed) {
      if (i >= frame.site.count()) break;
      values[site.count()] = frame.values[i];
      site.push(frame.site.tag(i));
    }
  }
  Status::Detail* enter() const { return detail::call_instance(instance, site, values.data()); }
  Status::Detail* enter_with(const CallOptions& options, CallReport* report) const {
    return detail::call_instance_with(instance, site, values.data(), options, report);
  }

  const runtime::OperatorInstance& instance;
  CallSite site;
  std::array<ArgValue, OPMUX_MAX_ARGS> values;
};

Status::Detail* enter_plan(Plan& plan, const ArgumentFrame& frame) {
  if (frame.words_possible) return in_words(kPlanWords, plan.bound(), frame);
  return detail::call_plan(plan.bound(), frame.site, frame.values);
}

/// Releases the GIL for a block if the call writes enough elements.
class WithoutGil {
 public:
  explicit WithoutGil(const ArgumentFrame& frame) {
    if (frame.elements_written() < release_gil_from) return;
    state_ = release_gil();
  }
  ~WithoutGil() {
    if (state_ != nullptr) take_gil(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

/// Publishes the call in `current_call`, so that Python implementations find it.
class Recorded {
 public:
  Recorded(const dispatch::OperatorSlot* slot, ArgumentFrame& frame) {
    if (python_kernels.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    record_ = {slot, &frame, {}, current_call, false};
    current_call = &record_;
  }
  ~Recorded() {
    if (record_.slot != nullptr) current_call = record_.outer;
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  PyObject* raised() const { return record_.raised.get(); }
  bool stopped() const { return record_.stopped; }

 private:
  CallRecord record_;
};

PyObject* finish(const ArgumentFrame& frame, Status::Detail* failure, const Recorded& recorded) {
  if (recorded.stopped()) [[unlikely]] {
    const Status ended(failure);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(recorded.raised())), recorded.raised());
    return nullptr;
  }
  if (failure == nullptr) [[likely]]
    return outputs_of(frame);
  raise(Status(failure), recorded.raised());
  return nullptr;
}

/// Calls inside the object that `surround` makes.
template <class Surround, class Enter>
PyObject* run_inside(const OperatorCall& op, ArgumentFrame& frame, Surround&& surround,
                     Enter&& into) {
  const Recorded recorded(&op.op().slot(), frame);
  Status::Detail* failure = nullptr;
  {
    const auto around = surround();
    const WithoutGil released(frame);
    failure = into();
  }
  return finish(frame, failure, recorded);
}

template <class Enter>
PyObject* run(const OperatorCall& op, ArgumentFrame& frame, uint32_t ambient, Enter&& into) {
  return run_inside(op, frame, [&] { return AmbientFacts(ambient); }, std::forward<Enter>(into));
}

/// Makes a call inside a scope that collects reports.
template <class Target>
PyObject* run_reported(const OperatorCall& op, ArgumentFrame& frame, const Target& target,
                       const ScopeObject::Content& scope, const CallOptions& options) {
  CallReport report;
  PyObject* const result = run(op, frame, frame.ambient() | scope.ambient, [&] {
    Status::Detail* const failure = target.enter_with(options, &report);
    report.outcome = failure == nullptr ? Code::ok : failure->code;
    return failure;
  });
  return hand_over(op.signature().name(), report, scope, result);
}

PyObject* run_plan_reported(const OperatorCall& op, Plan& plan, ArgumentFrame& frame,
                            const ScopeObject::Content& scope) {
  CallReport report;
  report.implementation = plan.implementation();
  report.generation = plan.generation();
  report.cached = true;
  PyObject* const result = run(op, frame, 0, [&] {
    const auto begin = std::chrono::steady_clock::now();
    Status::Detail* const failure = enter_plan(plan, frame);
    report.run_ns = static_cast<uint64_t>((std::chrono::steady_clock::now() - begin).count());
    report.outcome = failure == nullptr ? Code::ok : failure->code;
    return failure;
  });
  return hand_over(op.signature().name(), report, scope, result);
}

template <class Target>
[[gnu::noinline]] PyObject* call_in_scope(const OperatorCall& op, ArgumentFrame& frame,
                                          const Target& target, const ScopeObject::Content& scope) {
  const auto facts = [&] { return frame.ambient() | scope.ambient; };
  if (!scope.reporting && !scope.has_options && !frame.on_device()) [[likely]] {
    return run_inside(
        op, frame, [&] { return ScopeAndFacts(scope.scope, facts()); },
        [&] { return target.enter(); });
  }
  const EnteredScope entered(scope.scope);
  CallOptions options = scope.options;
  if (frame.on_device() && !frame.current_stream(options.stream)) return nullptr;
  if (scope.reporting) return run_reported(op, frame, target, scope, options);
  return run(op, frame, facts(), [&] { return target.enter_with(options, nullptr); });
}

/// Calls with tensors of a device are enqueued on its current stream.
template <class Target>
[[gnu::noinline]] PyObject* call_on_device(const OperatorCall& op, ArgumentFrame& frame,
                                           const Target& target) {
  CallOptions options;
  if (!frame.current_stream(options.stream)) return nullptr;
  return run(op, frame, frame.ambient(), [&] { return target.enter_with(options, nullptr); });
}

template <class Target>
[[gnu::always_inline]] inline PyObject* call_target(const OperatorCall& op, ArgumentFrame& frame,
                                                    const Target& target) {
  if (scopes_alive != 0) [[unlikely]] {
    const CurrentScope scope = current_scope(*op.runtime().runtime);
    if (scope.content != nullptr) return call_in_scope(op, frame, target, *scope.content);
  }
  if (frame.on_device()) [[unlikely]]
    return call_on_device(op, frame, target);
  return run(op, frame, frame.ambient(), [&] { return target.enter(); });
}

[[gnu::noinline]] bool move_to_current_stream(Plan& plan, const ArgumentFrame& frame) {
  void* stream = nullptr;
  if (!frame.current_stream(stream)) return false;
  plan.set_stream(stream);
  return true;
}

}  // namespace

PyObject* call_engine(const OperatorCall& op, ArgumentFrame& frame) {
  return call_target(op, frame, OfOperator{op.op().slot(), frame});
}

PyObject* call_instance(const OperatorCall& op, const HeldInstance& through, ArgumentFrame& frame) {
  return call_target(op, frame, OfInstance(through.instance.owner(), through.passed, frame));
}

Explanation explain_instance(const HeldInstance& through, const ArgumentFrame& frame) {
  const OfInstance target(through.instance.owner(), through.passed, frame);
  return detail::explain_instance(target.instance, target.site, target.values.data());
}

PyObject* call_plan(const OperatorCall& op, Plan& plan, ArgumentFrame& frame) {
  if (frame.on_device() && !move_to_current_stream(plan, frame)) [[unlikely]]
    return nullptr;
  if (scopes_alive != 0) [[unlikely]] {
    const CurrentScope scope = current_scope(*op.runtime().runtime);
    if (scope.content != nullptr && scope.content->reporting) {
      return run_plan_reported(op, plan, frame, *scope.content);
    }
  }
  return run(op, frame, 0, [&] { return enter_plan(plan, frame); });
}

}  // namespace opmux::python
