#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <opmux/detail/arguments.hpp>
#include <opmux/detail/entry_points.hpp>
#include <opmux/detail/export.hpp>
#include <opmux/detail/hot_plan.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/explanation.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

namespace runtime {
class Core;
}

/// An argument that is left out. Pass it for an optional argument that other arguments follow, and
/// in explain() for outputs whose shapes shall be inferred.
///
///   opmux::Operator rms_norm = runtime.op("rms_norm").value();
///   float x[8] = {}, y[8];
///   opmux::Status status = rms_norm(opmux::TensorView(y, opmux::f32, {2, 4}),
///                                   opmux::TensorView(x, opmux::f32, {2, 4}), opmux::none, 1e-5);
///   if (!status.ok()) std::cerr << status.to_string() << "\n";
inline constexpr std::nullopt_t none = std::nullopt;

/// One decision, kept: binding chooses the implementation, and calls run it without a lookup. Use
/// it in loops that call one operator with arguments of the same kind.
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   std::vector<float> data(4 * 64), result(4 * 64);
///   opmux::TensorView x(data.data(), opmux::f32, {4, 64}), y(result.data(), opmux::f32, {4, 64});
///   opmux::Plan plan = softmax.bind(y, x).value();
///   for (int step = 0; step < 100; ++step) {
///     opmux::Status status = plan(y, x);
///     if (status.code() == opmux::Code::revoked && plan.refresh().ok()) status = plan(y, x);
///     if (status.code() == opmux::Code::outside_plan) status = softmax(y, x);
///     if (!status.ok()) break;
///   }
///
/// A plan does not fall back: it returns the outcome of its implementation. It does not convert
/// tensors, and arguments that are strings or lists cannot be bound.
///
/// Owned by the program and used by one thread at a time; bind one plan for each thread. The
/// runtime must outlive it. Do not use a moved-from plan.
class Plan {
 public:
  /// current: a new decision would choose the same implementation. stale: it would choose another
  /// one; the plan still runs. revoked: the implementation was denied, quarantined or withdrawn,
  /// its backend was switched off, or its device was lost; the plan does not run until refresh().
  enum class State : uint32_t { current, stale, revoked };

  /// For Operator::bind().
  OPMUX_API explicit Plan(detail::Owned<dispatch::BoundPlan> plan);
  OPMUX_API Plan(Plan&&) noexcept;
  OPMUX_API Plan& operator=(Plan&&) noexcept;
  /// Adds the calls of this plan to the statistics. No call may be running.
  OPMUX_API ~Plan();

  /// Runs the implementation if the arguments fit the decision; they may differ from the bound ones
  /// in everything that the decision does not depend on. Fails without running anything with
  ///
  /// - `outside_plan` if these arguments need another decision: bind again or call the operator;
  /// - `invalid_argument` if the schema refuses them;
  /// - `revoked` if the implementation may not run any more: refresh() or bind again.
  ///
  /// Otherwise returns the outcome of the implementation, such as `failed` or `resource`.
  template <class... Args>
  Status operator()(const Args&... args) {
    using Packed = detail::Packed<Args...>;
    const Packed packed(args...);
    if constexpr (Packed::kPlanInRegisters) {
      return Status(detail::call_plan_words<Packed::kViews, Packed::kScalars>(
          *plan_, packed.site.word(), packed.word(0), packed.word(1), packed.word(2),
          packed.word(3)));
    } else {
      return Status(detail::call_plan(*plan_, packed.site, packed.values));
    }
  }

  /// Checks arguments as a call does and stores references to them for run_unchecked(). Fails as a
  /// call does, except that nothing runs; then prepare() must succeed before run_unchecked().
  template <class... Args>
  Status prepare(const Args&... args) {
    const detail::Packed<Args...> packed(args...);
    return detail::set_frame(*plan_, packed.site, packed.values);
  }
  /// Runs on the arguments of the last prepare() without checking them. The caller guarantees that
  /// those views still exist and that only their data pointers changed (TensorView::set_data), and
  /// that a Constant did not change. Fails with `revoked`, or with the outcome of the
  /// implementation.
  ///
  ///   opmux::Operator softmax = runtime.op("softmax").value();
  ///   float x[2][4] = {}, y[4];
  ///   opmux::TensorView in(x[0], opmux::f32, {1, 4}), out(y, opmux::f32, {1, 4});
  ///   opmux::Plan plan = softmax.bind(out, in).value();
  ///   opmux::Status status = plan.prepare(out, in);
  ///   for (int i = 0; i < 2 && status.ok(); ++i) {
  ///     in.set_data(x[i]);
  ///     status = plan.run_unchecked();
  ///   }
  Status run_unchecked() {
    detail::HotPlan& hot = *hot_;
    // The library handles a change of thread and a call inside a call.
    if (hot.thread != dispatch::thread_number || hot.marked()) [[unlikely]]
      return Status(detail::run_slowly(*plan_));
    if (hot.enter() >= detail::HotPlan::kRevoked) [[unlikely]]
      return Status(detail::end_plan(*plan_, -1));
    const int32_t outcome = hot.run(hot.user_data, hot.call);
    if (outcome != OPMUX_OK) [[unlikely]]
      return Status(detail::end_plan(*plan_, outcome < 0 ? OPMUX_FAILED : outcome));
    hot.leave();
    return {};
  }

  /// Sets the queue of the device that runs from now on are enqueued on, as CallOptions::stream
  /// does for a call. A plan starts with null, the default stream of the device. refresh() keeps
  /// it.
  OPMUX_API void set_stream(void* stream) noexcept;

  /// The state at this moment; another thread may change it right after. May be called from any
  /// thread.
  OPMUX_API State state() const noexcept;
  /// Decides again for the arguments that the plan was bound with and runs that choice from now on.
  /// If it fails (`no_candidate`, for example), the plan stays as it was. Call prepare() again
  /// before run_unchecked().
  OPMUX_API Status refresh();
  /// Id of the implementation that the plan runs. The reference is valid until refresh() or
  /// destruction.
  OPMUX_API const std::string& implementation() const noexcept;
  /// Number of the snapshot in which the decision was made.
  OPMUX_API uint64_t generation() const noexcept;

  /// For bindings.
  dispatch::BoundPlan& bound() const noexcept { return *plan_; }

 private:
  detail::Owned<dispatch::BoundPlan> plan_;
  detail::HotPlan* hot_;
};

/// A word for a place in the program, such as "layer.3", as 32 bits. Rules and selectors can match
/// on it. Made once by Runtime::tag() and passed in CallOptions; 0 means none.
///
///   const opmux::Tag layer3 = runtime.tag("layer.3");
///   opmux::Operator softmax = runtime.op("softmax").value();
///   float x[4] = {}, y[4];
///   opmux::Status status = softmax.with({.tag = layer3})(
///       opmux::TensorView(y, opmux::f32, {1, 4}), opmux::TensorView(x, opmux::f32, {1, 4}));
struct Tag {
  uint32_t number = 0;
};

/// Options of one call; pass them to Operator::with(). Everything has a default.
struct CallOptions {
  /// The place in the program; see Tag.
  Tag tag = {};
  /// The queue of a device that the call is enqueued on: DeviceStream::get(), or a queue of the
  /// program that belongs to the context of the backend. Null is the default stream of the device.
  /// The call returns when the work is enqueued.
  void* stream = nullptr;
  /// Most threads that the implementation may use, the calling thread included. 1 keeps the call on
  /// the calling thread. 0 means as many as the runtime has, or 1 if `parallel_for` is set.
  int32_t max_threads = 0;
  /// Thread pool of the program, used instead of the runtime's if max_threads is above 1. It is
  /// called on the calling thread and must return after every index has run. Null: threads of the
  /// runtime.
  opmux_parallel_for_fn parallel_for = nullptr;
  void* pool = nullptr;  ///< First argument of parallel_for.
};

/// One argument of a schema, for tools that learn about operators at run time.
struct ArgumentInfo {
  std::string name;                     ///< As in the schema: "weight".
  ArgTag type = ArgTag::none;           ///< Kind of value to pass.
  bool optional = false;                ///< May be absent, or left out because it has a default.
  bool output = false;                  ///< `out`: written, not read.
  std::vector<std::string> words = {};  ///< Allowed words of an enum, by position.
  bool updated = false;                 ///< `inout`: read and written.
  bool any_shape = false;               ///< A tensor of any shape: `[*]`.
  /// Dimensions of a tensor, as names or numbers; "..." first if it has leading dimensions.
  std::vector<std::string> dims = {};
  std::string dtype_variable = {};  ///< Arguments with the same variable must have the same dtype.
  std::string may_alias = {};       ///< `out(x)`: argument whose memory this output may use.
  bool constant = false;            ///< `const`: may be packed if a Constant is passed.
  std::string default_text = {};    ///< As the schema spells it; empty if there is no default.
  bool integer = false;             ///< An output that bindings allocate as i64.
};

/// Shape and element type of an output, derived from the inputs of a call.
struct OutputInfo {
  size_t position = 0;  ///< Index among the arguments of the schema.
  DType dtype;
  Device device;
  std::vector<int64_t> shape;
};

class Operator;
class Instance;
struct NamedArgument;

/// A call with a report or options, returned by Operator::with(). Call it in the same expression:
/// it refers to the report.
class CallWith {
 public:
  /// Calls the operator; arguments and failures are those of Operator::operator().
  template <class... Args>
  Status operator()(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return Status(detail::call_with(*slot_, packed.site, packed.values, options_, report_));
  }

 private:
  friend class Operator;
  CallWith(dispatch::OperatorSlot* slot, CallReport* report, const CallOptions& options)
      : slot_(slot), report_(report), options_(options) {}
  dispatch::OperatorSlot* slot_;
  CallReport* report_;
  CallOptions options_;
};

/// A handle to an operator: looked up once by name, then called.
///
///   opmux::Operator rms_norm = runtime.op("rms_norm").value();
///   std::vector<float> data(4 * 64, 1.0f), result(4 * 64), scale(64, 1.0f);
///   opmux::TensorView x(data.data(), opmux::f32, {4, 64}), y(result.data(), opmux::f32, {4, 64});
///   opmux::TensorView weight(scale.data(), opmux::f32, {64});
///   opmux::Status status = rms_norm(y, x, weight, 1e-6);
///   if (!status.ok()) std::cerr << status.to_string() << "\n";
///
/// Arguments follow the order of the schema (schema() prints it). Trailing arguments with defaults
/// may be left out; an absent optional argument is opmux::none. A tensor is a TensorView or a
/// Constant, a scalar is a bool, an integer or a floating-point number, an enum is its word or its
/// position. All arguments are borrowed until the call returns.
///
/// Cheap to copy. Calls are safe from any thread, take no lock and may nest up to eight deep. The
/// runtime must outlive the handle. A plain call does not check that outputs and inputs do not
/// overlap; the caller must ensure it. bind() checks it.
class Operator {
 public:
  /// Routes the call to the best implementation and runs it, falling back to the next candidate
  /// where that is safe. A call whose outputs have no elements succeeds without running anything.
  ///
  /// - `invalid_argument`: the arguments do not fit the schema; no implementation ran. Kernels of
  /// operators that check data (index ranges, for example) return it too.
  /// - `no_candidate`: policy, capabilities or health left nothing to run; the message lists every
  /// implementation with its reason.
  /// - `failed`, `resource`, `declined`, `device_lost`: the last implementation ended with it, and
  /// no fallback was possible or allowed (`strict`). Outputs may be partly written.
  /// - `frozen`: the runtime is frozen, the policy is strict, and the locked choice cannot run.
  template <class... Args>
  Status operator()(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return Status(detail::call(*slot_, packed));
  }

  /// The same call with options, with a report, or both. `report` is filled in also when the call
  /// fails, and must outlive the call expression.
  ///
  ///   opmux::Operator softmax = runtime.op("softmax").value();
  ///   float x[4] = {}, y[4];
  ///   opmux::CallReport report;
  ///   opmux::Status status = softmax.with(report, {.max_threads = 1})(
  ///       opmux::TensorView(y, opmux::f32, {1, 4}), opmux::TensorView(x, opmux::f32, {1, 4}));
  ///   std::cout << report.implementation << " took " << report.run_ns << " ns\n";
  CallWith with(CallReport& report, const CallOptions& options = {}) const {
    return {slot_, &report, options};
  }
  CallWith with(const CallOptions& options) const { return {slot_, nullptr, options}; }

  /// Decides once for arguments like these and returns a Plan that runs the choice without a
  /// lookup. Nothing runs yet. The plan copies shapes and strides, not data. Fails as a call does,
  /// with `invalid_argument` ("schema.overlap") if an output overlaps an input, and with
  /// `unsupported` for strings, lists, enum words ("plan.arguments") and tensors that only a
  /// conversion would make fit ("plan.transforms").
  template <class... Args>
  Result<Plan> bind(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::bind(*slot_, packed.site, packed.values, false);
  }
  /// A plan for use while a graph is captured: only implementations that promise
  /// OPMUX_IMPL_CAPTURE_SAFE are candidates, and no waiting plugin is loaded. Fails as bind() does.
  template <class... Args>
  Result<Plan> bind_for_capture(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::bind(*slot_, packed.site, packed.values, true);
  }

  /// Makes the decision that the first call with such arguments would make, without running it, and
  /// returns the id of the implementation. The decision is cached and becomes part of
  /// LockfileControl::current(). Outputs may be opmux::none.
  ///
  ///   opmux::Operator softmax = runtime.op("softmax").value();
  ///   float x[4];
  ///   opmux::Result<std::string> id =
  ///       softmax.decide(opmux::none, opmux::TensorView(x, opmux::f32, {1, 4}));
  ///   std::cout << (id ? *id : id.error().to_string()) << "\n";
  ///
  /// Fails with `invalid_argument`, `no_candidate`, or `unsupported` ("lock.class") if such calls
  /// are decided each time and therefore cannot be locked.
  template <class... Args>
  Result<std::string> decide(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::decide(*slot_, packed.site, packed.values);
  }

  /// Fixes arguments by name, such as the weight and the options of one layer of a model, and
  /// returns an object whose calls pass the others; <opmux/instance.hpp>, which <opmux/opmux.hpp>
  /// includes, describes it. Implementations keep their state in it.
  ///
  ///   opmux::Operator rms_norm = runtime.op("rms_norm").value();
  ///   float x[4] = {1, 2, 3, 4}, y[4];
  ///   opmux::Instance norm = rms_norm.instance({{"eps", 1e-5}}).value();
  ///   opmux::Status status = norm(opmux::TensorView(y, opmux::f32, {1, 4}),
  ///                               opmux::TensorView(x, opmux::f32, {1, 4}));
  ///
  /// Fails with `not_found` for a name that the schema does not have, and with `invalid_argument`
  /// for a value that does not fit the schema, an output ("instance.argument") or a required
  /// `const` tensor that is missing ("instance.parameter").
  OPMUX_API Result<Instance> instance(std::initializer_list<NamedArgument> fixed) const;
  OPMUX_API Result<Instance> instance(std::span<const NamedArgument> fixed) const;

  /// The decision that a call with these arguments would make, with a reason for every candidate;
  /// see Explanation. Outputs may be opmux::none: their shapes are inferred. Nothing runs. If the
  /// arguments do not fit the schema, the explanation has no candidates and its note says why.
  template <class... Args>
  Explanation explain(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::explain(*slot_, packed.site, packed.values);
  }

  /// Calls with arguments that are known at run time only, in the order of the schema, as
  /// opmux_call_operator() takes them; <opmux/opmux.h> has functions that make opmux_arg. Fails as
  /// operator() does.
  OPMUX_API Status call_arguments(std::span<const opmux_arg> arguments) const;
  /// The same with options, and with a report unless `report` is null.
  OPMUX_API Status call_arguments(std::span<const opmux_arg> arguments, const CallOptions& options,
                                  CallReport* report = nullptr) const;

  /// explain() with arguments that are known at run time only.
  OPMUX_API Explanation explain_arguments(std::span<const opmux_arg> arguments) const;

  /// decide() with arguments that are known at run time only.
  OPMUX_API Result<std::string> decide_arguments(std::span<const opmux_arg> arguments) const;

  /// Shapes, element types and device of the outputs that inputs like these produce; for callers
  /// that allocate outputs. Outputs among the arguments may be absent; those that are present
  /// contribute dimensions that no input has. Fails with `invalid_argument` if the inputs do not
  /// fit the schema, and with reason "schema.not_inferable" if no argument determines a dimension.
  OPMUX_API Result<std::vector<OutputInfo>> infer_outputs(
      std::span<const opmux_arg> arguments) const;

  /// The name: "rms_norm". Valid as long as the runtime.
  OPMUX_API std::string_view name() const noexcept;
  /// The canonical text of the schema: "softmax(out Tensor y[..., H], ...)".
  OPMUX_API std::string schema() const;
  /// The arguments in the order of the schema.
  OPMUX_API std::vector<ArgumentInfo> arguments() const;
  /// The position of an argument by name. Fails with `not_found` and suggests the nearest name.
  OPMUX_API Result<size_t> position(std::string_view argument) const;

  /// For bindings.
  dispatch::OperatorSlot& slot() const noexcept { return *slot_; }

 private:
  friend class runtime::Core;
  explicit Operator(dispatch::OperatorSlot* slot) : slot_(slot) {}
  dispatch::OperatorSlot* slot_;
};

}  // namespace opmux
