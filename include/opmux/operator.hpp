#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <opmux/arguments.hpp>
#include <opmux/explanation.hpp>
#include <opmux/export.hpp>
#include <opmux/plan.hpp>
#include <opmux/report.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

/// A word for a place in a program ("layer.3"), made once by Runtime::tag; 32 bits on a call.
struct Tag {
  uint32_t number = 0;
};

/// Options of one call. Everything has a default.
struct CallOptions {
  Tag tag = {};
  void* stream = nullptr;
  /// 1: stay on this thread. 0: as many as the runtime has, or 1 with a parallel_for.
  int32_t max_threads = 0;
  /// The engine's own threads, lent to the implementation if max_threads allows more than one;
  /// null: those of the runtime.
  opmux_parallel_for_fn parallel_for = nullptr;
  void* pool = nullptr;  ///< first argument of parallel_for
};

/// One argument of an operator's schema, for tools that meet operators at run time.
struct ArgumentInfo {
  std::string name;
  ArgTag type = ArgTag::none;           ///< what it travels as
  bool optional = false;                ///< may be absent, or left out for a default
  bool output = false;                  ///< `out`: only written
  std::vector<std::string> words = {};  ///< of an enum
  bool updated = false;                 ///< `inout`: read and written
  bool any_shape = false;               ///< a tensor of whatever shape
  /// Of a tensor: names or numbers, behind a leading "..." if it has one.
  std::vector<std::string> dims = {};
  std::string dtype_variable = {};  ///< arguments that share one have one dtype
  std::string may_alias = {};       ///< `out(x)`: may be the very same memory as that argument
  bool constant = false;            ///< `const`: may be packed, given an owner
  std::string default_text = {};    ///< as the schema spells it; empty if there is none
  bool integer = false;             ///< an output that is made of i64 where nobody gives it
};

/// What an output of a call with certain inputs looks like.
struct OutputInfo {
  size_t position = 0;  ///< among the arguments of the schema
  DType dtype;
  Device device;
  std::vector<int64_t> shape;
};

class Operator;

/// A call with a report or options, made by Operator::with; use it at once.
class CallWith {
 public:
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

/// An operator bound in a program. Cheap to copy, safe from any thread; the runtime must outlive
/// it.
///
/// Arguments stand in the order of the schema; trailing ones with defaults may be left out, and an
/// absent optional is opmux::none. Tensors are TensorView or Constant, scalars bool, integers and
/// floating point numbers, enums their word or position.
class Operator {
 public:
  /// Routes the call to the best implementation and runs it. Fails with `invalid_argument` (the
  /// schema's conditions do not hold), `no_candidate`, or the outcome of the implementation.
  template <class... Args>
  Status operator()(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return Status(detail::call(*slot_, packed));
  }

  /// The same with options, or with a report of what happened.
  CallWith with(CallReport& report, const CallOptions& options = {}) const {
    return {slot_, &report, options};
  }
  CallWith with(const CallOptions& options) const { return {slot_, nullptr, options}; }

  /// Decides once for arguments like these; the plan is then called without a lookup.
  template <class... Args>
  Result<Plan> bind(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::bind(*slot_, packed.site, packed.values, false);
  }
  /// For a graph that is captured: only implementations that may run then, and staleness is
  /// ignored.
  template <class... Args>
  Result<Plan> bind_for_capture(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::bind(*slot_, packed.site, packed.values, true);
  }

  /// Decides for a call like this as its first call would, without running it, and returns the
  /// implementation: what Runtime::lock then tells of. Fails with "lock.class" if such calls are
  /// decided each time and cannot be locked. Outputs may be opmux::none.
  template <class... Args>
  Result<std::string> decide(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::decide(*slot_, packed.site, packed.values);
  }

  /// The decision that a call with these arguments would make, with a reason for every candidate.
  /// Outputs may be opmux::none: their shapes are inferred. If the arguments do not fit the schema,
  /// the explanation has no candidates and its note says why.
  template <class... Args>
  Explanation explain(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::explain(*slot_, packed.site, packed.values);
  }

  /// A call with arguments that are known at run time only, as opmux_call_operator takes them; with
  /// options, or with a report of what happened, as opmux_call_operator_with does.
  OPMUX_API Status call_arguments(std::span<const opmux_arg> arguments) const;
  OPMUX_API Status call_arguments(std::span<const opmux_arg> arguments, const CallOptions& options,
                                  CallReport* report = nullptr) const;

  /// explain() with arguments that are known at run time only, as opmux_explain takes them.
  OPMUX_API Explanation explain_arguments(std::span<const opmux_arg> arguments) const;

  /// decide() with arguments that are known at run time only.
  OPMUX_API Result<std::string> decide_arguments(std::span<const opmux_arg> arguments) const;

  /// Shapes and element types of the outputs that inputs like these give; outputs among the
  /// arguments may be absent; those that are not tell dimensions that inputs do not. Fails with
  /// `invalid_argument` if the inputs do not fit the schema or nothing tells.
  OPMUX_API Result<std::vector<OutputInfo>> infer_outputs(
      std::span<const opmux_arg> arguments) const;

  OPMUX_API std::string_view name() const noexcept;
  /// The canonical text of its schema.
  OPMUX_API std::string schema() const;
  /// Its arguments in the order of the schema.
  OPMUX_API std::vector<ArgumentInfo> arguments() const;
  /// The position of an argument; `not_found` suggests the nearest name.
  OPMUX_API Result<size_t> position(std::string_view argument) const;

  dispatch::OperatorSlot& slot() const noexcept { return *slot_; }

 private:
  friend class Runtime;
  explicit Operator(dispatch::OperatorSlot* slot) : slot_(slot) {}
  dispatch::OperatorSlot* slot_;
};

}  // namespace opmux
