#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/caps.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

/// Origin of an implementation, which determines the default priority: default_ 150 (ships with
/// opmux or the program), vendor 100, reference 50. Policies can name kinds in their lists.
enum class Kind : int32_t {
  default_ = OPMUX_KIND_DEFAULT,
  vendor = OPMUX_KIND_VENDOR,
  reference = OPMUX_KIND_REFERENCE,
};

/// "default", "vendor", "reference"; static lifetime.
OPMUX_API std::string_view name_of(Kind kind) noexcept;
/// The priority of an implementation of this kind that does not set one.
constexpr int priority_of(Kind kind) {
  return kind == Kind::default_ ? 150 : kind == Kind::vendor ? 100 : 50;
}

/// How a kernel ended, which determines what opmux does next.
enum class Outcome : int32_t {
  ok = OPMUX_OK,              ///< Done.
  declined = OPMUX_DECLINED,  ///< Refused before writing anything; the next candidate runs.
  /// The caller's mistake; final for operators that check data, otherwise treated as declined.
  invalid_argument = OPMUX_INVALID_ARGUMENT,
  failed = OPMUX_FAILED,            ///< Outputs may be corrupted; falls back if inputs are intact.
  resource = OPMUX_RESOURCE,        ///< Out of memory; retried once after caches were trimmed.
  device_lost = OPMUX_DEVICE_LOST,  ///< Nothing runs on that device again in this process.
};

/// The arguments of one call as a kernel in C++ sees them, by position in the schema. opmux has
/// already checked them against the schema and the capabilities, so accessors do not check again.
///
///   auto run = [](opmux::CallFrame& call) {
///     const opmux::TensorView y = call.tensor(0);
///     if (!y.contiguous()) return call.end(opmux::Outcome::declined, "y has gaps");
///     for (int64_t i = 0; i < y.elements(); ++i) {
///       call.data<float>(0)[i] = 2 * call.data<const float>(1)[i];
///     }
///     return opmux::Outcome::ok;
///   };
///
/// Everything is borrowed for the call: do not keep pointers or views after it returned.
class CallFrame {
 public:
  explicit CallFrame(const opmux_call& call) : call_(&call) {}

  /// Number of arguments in the schema; those left out by the caller hold their defaults.
  size_t size() const { return call_->arg_count; }
  /// Whether argument i is present. Only optional arguments can be absent.
  bool has(size_t i) const { return arg(i).tag != OPMUX_ARG_NONE; }
  /// Argument i as a tensor; not present() if it was left out.
  TensorView tensor(size_t i) const {
    return has(i) ? TensorView(*arg(i).value.tensor) : TensorView();
  }
  /// The first element of tensor argument i, byte offset included. The tensor must be present.
  template <class T>
  T* data(size_t i) const {
    const opmux_tensor& t = *arg(i).value.tensor;
    return reinterpret_cast<T*>(static_cast<char*>(t.data) + t.byte_offset);
  }
  /// Argument i as a number: float; int or the position of an enum word; bool.
  double f64(size_t i) const { return arg(i).value.f64; }
  int64_t i64(size_t i) const { return arg(i).value.i64; }
  bool boolean(size_t i) const { return arg(i).value.i64 != 0; }

  /// Ends the call with a message that the caller sees: `return call.end(Outcome::failed, "...")`.
  /// The text is copied and truncated to the room that the caller provided.
  OPMUX_API Outcome end(Outcome outcome, std::string_view text) const;

  /// The C form, with stream, workspace, thread pool and prepared state.
  const opmux_call& c() const { return *call_; }

 private:
  const opmux_arg& arg(size_t i) const {
    return *reinterpret_cast<const opmux_arg*>(reinterpret_cast<const char*>(call_->args) +
                                               i * call_->arg_stride);
  }
  const opmux_call* call_;
};

/// A fact by kind (OPMUX_FACT_*) and name, for `verify_reads`: {OPMUX_FACT_DIM, "H"}.
struct FactRef {
  uint32_t kind = 0;
  std::string name;
};

/// Facts of a call that a verifier may read: those that its `verify_reads` lists.
class Facts {
 public:
  explicit Facts(const opmux_facts& facts) : facts_(&facts) {}
  /// The value of a fact, or nullopt if it is absent or was not listed.
  std::optional<int64_t> get(uint32_t kind, std::string_view name) const {
    int64_t value = 0;
    if (facts_->get(facts_->context, kind, {name.data(), name.size()}, &value) == 0) return {};
    return value;
  }
  /// Size of a named dimension, or nullopt if `verify_reads` does not list it.
  std::optional<int64_t> dim(std::string_view name) const { return get(OPMUX_FACT_DIM, name); }

 private:
  const opmux_facts* facts_;
};

/// Functions of an implementation in the form of abi.h, instead of Implementation::run. They avoid
/// the indirection of std::function and offer the parts of the life cycle that only C has: prepared
/// state, workspace, packed constants. Pointers that are null are not provided; `run` is required.
/// `user_data` and the functions must stay valid until Registration::withdraw() has returned. See
/// opmux_impl in abi.h for the contract of each.
struct KernelFunctions {
  void* user_data = nullptr;  ///< First argument of every function.
  int32_t (*run)(void* user_data, const opmux_call* call) = nullptr;
  int32_t (*plan)(void* user_data, const opmux_call* call, void** prepared) = nullptr;
  void (*plan_free)(void* user_data, void* prepared) = nullptr;
  uint64_t (*workspace)(void* user_data, const opmux_call* call) = nullptr;
  int32_t (*create)(void* user_data, const opmux_arg* options, uint32_t count, void** instance,
                    opmux_error* error) = nullptr;
  int32_t (*load)(void* user_data, void* instance, const opmux_arg* params, uint32_t count,
                  opmux_error* error) = nullptr;
  void (*destroy)(void* user_data, void* instance) = nullptr;
  int32_t (*describe)(void* user_data, void* instance, const opmux_node_sink* sink) = nullptr;
};

/// An implementation inside the program: the argument of Runtime::implement().
///
///   opmux::Status defined = runtime.define("swish(out Tensor y[N], Tensor x[N])");
///   opmux::Registration registration =
///       runtime
///           .implement({.id = "swish/acme.fast",
///                       .vendor = "acme",
///                       .caps = opmux::Caps{}.dtypes({opmux::f32}).contiguous(),
///                       .run =
///                           [](opmux::CallFrame& call) {
///                             for (int64_t i = 0; i < call.tensor(0).dim(0); ++i) {
///                               const float x = call.data<const float>(1)[i];
///                               call.data<float>(0)[i] = x / (1 + std::exp(-x));
///                             }
///                             return opmux::Outcome::ok;
///                           }})
///           .value();
///
/// implement() copies the struct. State that `run` and `verify` capture by reference must stay
/// valid until Registration::withdraw() has returned.
struct Implementation {
  /// "operator/provider.variant". The provider becomes a backend if it does not exist yet.
  std::string id;
  /// Must be the same for all implementations of one provider.
  Kind kind = Kind::vendor;
  std::string vendor = {};  ///< Required for Kind::vendor.
  int priority = -1;        ///< From 0 to 1000; negative: the default of the kind.
  /// Calls that it accepts; see Caps.
  Caps caps = {};
  /// Runs the operator. Either this or `kernel.run` must be set. Called from any thread, several at
  /// a time, unless `flags` has OPMUX_IMPL_SERIAL. An exception counts as `failed`, with its text.
  detail::Function<Outcome(CallFrame&)> run = {};
  /// C functions instead of `run`; they win if both are set.
  KernelFunctions kernel = {};
  /// Optional check beyond `caps`: returns an empty string to accept, or a sentence to refuse
  /// ("verify.refused"). It must be pure and fast, because its answer is cached for all calls with
  /// equal facts. An exception is reported as a broken verifier ("verify.broken") and refuses.
  detail::Function<std::string(const Facts&)> verify = {};
  /// Facts that `verify` reads. nullopt: scalars, dtypes, ranks, device.
  std::optional<std::vector<FactRef>> verify_reads = {};
  /// Facts that `kernel.plan` depends on. nullopt: all, so that each shape is prepared separately.
  std::optional<std::vector<FactRef>> plan_reads = {};
  /// Promises: OPMUX_IMPL_DETERMINISTIC, OPMUX_IMPL_ATOMIC_OUTPUTS and others of abi.h.
  uint32_t flags = 0;
  /// The schema text that this was written against; empty: the current schema of the operator. It
  /// may lack trailing arguments with defaults; calls that set those then use other candidates.
  std::string signature = {};
  /// Identifies the build of the kernel in lockfiles and quarantines; may be empty.
  std::string build_id = {};
};

}  // namespace opmux
