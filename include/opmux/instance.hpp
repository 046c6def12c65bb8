#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/detail/arguments.hpp>
#include <opmux/detail/export.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/explanation.hpp>
#include <opmux/operator.hpp>
#include <opmux/status.hpp>

namespace opmux {

namespace runtime {
class OperatorInstance;
}

/// An argument of an operator by name, for Operator::instance(): {"eps", 1e-5}, {"weight", view}.
/// It borrows the value; the instance copies numbers, strings, lists and shapes.
struct NamedArgument {
  template <class T>
  NamedArgument(std::string_view argument, const T& given) : name(argument) {
    constexpr ArgTag kTag = detail::tag_of<T>();
    opmux_list list{};
    const ArgValue word = detail::value_of(given, list);
    if constexpr (kTag == ArgTag::tensor || kTag == ArgTag::constant) {
      if (word.tensor->present()) value.tag = OPMUX_ARG_TENSOR;
      value.value.tensor = &word.tensor->c();
    } else if constexpr (is_list(kTag)) {
      value.tag = static_cast<uint32_t>(kTag);
      value.value.list = list;
    } else if constexpr (kTag == ArgTag::floating) {
      value.tag = OPMUX_ARG_F64;
      value.value.f64 = word.f64;
    } else {
      value.tag = static_cast<uint32_t>(kTag);
      value.value.i64 = word.i64;
    }
  }
  NamedArgument(std::string_view argument, const opmux_arg& given) : name(argument), value(given) {}

  std::string_view name;
  opmux_arg value{};
};

namespace detail {
OPMUX_API Result<Instance> make_instance(dispatch::OperatorSlot& slot,
                                         std::span<const NamedArgument> named);
OPMUX_API Status::Detail* call_instance(const runtime::OperatorInstance& instance,
                                        const CallSite& site, const ArgValue* values) noexcept;
OPMUX_API Status::Detail* call_instance_with(const runtime::OperatorInstance& instance,
                                             const CallSite& site, const ArgValue* values,
                                             const CallOptions& options,
                                             CallReport* report) noexcept;
OPMUX_API Explanation explain_instance(const runtime::OperatorInstance& instance,
                                       const CallSite& site, const ArgValue* values);
}  // namespace detail

/// The object that one implementation keeps in an Instance.
struct InstanceState {
  std::string implementation;  ///< "acme.cached_attention/acme.plain".
  uint64_t bytes = 0;          ///< Attribute "packed_bytes", or the size of the parameters.
  /// Attributes that describe() of the implementation reported when it made the object.
  std::vector<std::pair<std::string, std::string>> attributes;
};

/// A call through an instance with a report or options, returned by Instance::with(). Call it in
/// the same expression: it refers to the report.
class InstanceCall {
 public:
  /// Calls the instance; arguments and failures are those of Instance::operator().
  template <class... Args>
  Status operator()(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return Status(
        detail::call_instance_with(*instance_, packed.site, packed.values, options_, report_));
  }

 private:
  friend class Instance;
  InstanceCall(const runtime::OperatorInstance* instance, CallReport* report,
               const CallOptions& options)
      : instance_(instance), report_(report), options_(options) {}
  const runtime::OperatorInstance* instance_;
  CallReport* report_;
  CallOptions options_;
};

/// An operator with some arguments fixed, such as one layer of a model, and the state that
/// implementations keep for it. Made by Operator::instance().
///
///   opmux::Operator linear = runtime.op("linear").value();
///   std::vector<float> rows(64 * 64, 0.5f), x(4 * 64), y(4 * 64);
///   opmux::TensorView weight(rows.data(), opmux::f32, {64, 64});
///   opmux::Instance layer = linear.instance({{"weight", weight}}).value();
///   opmux::Status status = layer(opmux::TensorView(y.data(), opmux::f32, {4, 64}),
///                                opmux::TensorView(x.data(), opmux::f32, {4, 64}));
///   for (const opmux::InstanceState& state : layer.states()) {
///     std::cout << state.implementation << " keeps " << state.bytes << " bytes\n";
///   }
///
/// Scalars are its options: those that were not named have their defaults, and calls do not pass
/// them; a required scalar that was not named is passed with each call. The `const` tensors are its
/// parameters; other inputs may be named too. A call passes the arguments that are left, in the
/// order of the schema.
///
/// Calls are decided, checked and fall back as those of the operator. The first call that runs an
/// implementation with `create` makes an object from the options, which `load` gives the parameters
/// to; each implementation has one in each instance. Implementations that need such an object run
/// only in calls through an instance; in others they are refused with "caps.instance".
///
/// Move-only. Calls may use one instance from several threads; an implementation must guard the
/// state that it changes. Parameters are borrowed: their data must outlive the instance. No call
/// may be using the instance when it is destroyed, and the runtime must outlive it.
class Instance {
 public:
  OPMUX_API Instance(Instance&& other) noexcept;
  OPMUX_API Instance& operator=(Instance&& other) noexcept;
  /// Destroys what implementations keep in it.
  OPMUX_API ~Instance();

  /// Calls the operator with the fixed arguments and these. Fails as Operator::operator() does.
  template <class... Args>
  Status operator()(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return Status(detail::call_instance(*owner_, packed.site, packed.values));
  }
  /// The same call with options, with a report, or both; see Operator::with().
  InstanceCall with(CallReport& report, const CallOptions& options = {}) const {
    return {owner_.get(), &report, options};
  }
  InstanceCall with(const CallOptions& options) const { return {owner_.get(), nullptr, options}; }
  /// The decision that a call with these arguments would make; see Operator::explain().
  template <class... Args>
  Explanation explain(const Args&... args) const {
    const detail::Packed<Args...> packed(args...);
    return detail::explain_instance(*owner_, packed.site, packed.values);
  }

  /// Calls and explanations with arguments that are known at run time only.
  OPMUX_API Status call_arguments(std::span<const opmux_arg> arguments,
                                  const CallOptions& options = {},
                                  CallReport* report = nullptr) const;
  OPMUX_API Explanation explain_arguments(std::span<const opmux_arg> arguments) const;

  /// Destroys what implementations keep, so that the next calls make new objects: after the data of
  /// a parameter changed, or to start again. A call that is running finishes with the object that
  /// it started with, and that object is destroyed after it.
  OPMUX_API void reset();
  /// The objects that implementations keep in this instance now, in the order of their creation.
  OPMUX_API std::vector<InstanceState> states() const;
  /// Names of the arguments that calls pass, in order.
  OPMUX_API std::vector<std::string> arguments() const;

  /// For Operator::instance() and bindings.
  OPMUX_API explicit Instance(detail::Shared<runtime::OperatorInstance> owner) noexcept;
  const runtime::OperatorInstance& owner() const noexcept { return *owner_; }

 private:
  detail::Shared<runtime::OperatorInstance> owner_;
};

/// For tools: an instance that fixes the scalars and `const` tensors among these arguments, which
/// are in the order of the schema. `passed` gets the arguments of its calls. Fails as
/// Operator::instance() does.
OPMUX_API Result<Instance> instance_for(const Operator& op, std::span<const opmux_arg> arguments,
                                        std::vector<opmux_arg>& passed);

/// The states as JSON: {"instances": [{"implementation": ..., "bytes": ..., "attributes": {}}]}.
OPMUX_API std::string to_json(const std::vector<InstanceState>& states);

}  // namespace opmux
