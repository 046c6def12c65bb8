#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/caps.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

/// Where an implementation stands before policy speaks: priorities 150, 100, 50.
enum class Kind : int32_t {
  default_ = OPMUX_KIND_DEFAULT,
  vendor = OPMUX_KIND_VENDOR,
  reference = OPMUX_KIND_REFERENCE,
};

/// "default", "vendor", "reference".
OPMUX_API std::string_view name_of(Kind kind) noexcept;
/// The priority a kind starts from.
constexpr int priority_of(Kind kind) {
  return kind == Kind::default_ ? 150 : kind == Kind::vendor ? 100 : 50;
}

/// How a kernel ended; see docs/concepts.md for what follows from each.
enum class Outcome : int32_t {
  ok = OPMUX_OK,
  declined = OPMUX_DECLINED,
  invalid_argument = OPMUX_INVALID_ARGUMENT,
  failed = OPMUX_FAILED,
  resource = OPMUX_RESOURCE,
  device_lost = OPMUX_DEVICE_LOST,
};

/// The arguments of one call, as a kernel written in C++ sees them. Borrowed for the call.
class CallFrame {
 public:
  explicit CallFrame(const opmux_call& call) : call_(&call) {}

  size_t size() const { return call_->arg_count; }
  bool has(size_t i) const { return arg(i).tag != OPMUX_ARG_NONE; }
  /// Argument i as a tensor; not present() if it was left out.
  TensorView tensor(size_t i) const {
    return has(i) ? TensorView(*arg(i).value.tensor) : TensorView();
  }
  /// The first element of tensor argument i, its byte offset included.
  template <class T>
  T* data(size_t i) const {
    const opmux_tensor& t = *arg(i).value.tensor;
    return reinterpret_cast<T*>(static_cast<char*>(t.data) + t.byte_offset);
  }
  double f64(size_t i) const { return arg(i).value.f64; }
  int64_t i64(size_t i) const { return arg(i).value.i64; }
  bool boolean(size_t i) const { return arg(i).value.i64 != 0; }

  /// Ends the call with a sentence: `return call.end(Outcome::failed, "...")`.
  OPMUX_API Outcome end(Outcome outcome, std::string_view text) const;

  const opmux_call& c() const { return *call_; }

 private:
  const opmux_arg& arg(size_t i) const {
    return *reinterpret_cast<const opmux_arg*>(reinterpret_cast<const char*>(call_->args) +
                                               i * call_->arg_stride);
  }
  const opmux_call* call_;
};

/// A fact by name, for `verify_reads`: {OPMUX_FACT_DIM, "H"}.
struct FactRef {
  uint32_t kind = 0;
  std::string name;
};

/// What a verifier may look at: the facts that its `verify_reads` lists.
class Facts {
 public:
  explicit Facts(const opmux_facts& facts) : facts_(&facts) {}
  /// The fact, or nothing if it is absent or was not listed.
  std::optional<int64_t> get(uint32_t kind, std::string_view name) const {
    int64_t value = 0;
    if (facts_->get(facts_->context, kind, {name.data(), name.size()}, &value) == 0) return {};
    return value;
  }
  std::optional<int64_t> dim(std::string_view name) const { return get(OPMUX_FACT_DIM, name); }

 private:
  const opmux_facts* facts_;
};

/// The functions of an implementation as abi.h has them: without the cost of std::function, and
/// with the parts of the life cycle that only they have. `user_data` must outlive the registration.
struct KernelFunctions {
  void* user_data = nullptr;
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

/// An implementation inside a program: what Runtime::implement takes.
struct Implementation {
  /// "operator/provider.variant".
  std::string id;
  Kind kind = Kind::vendor;
  std::string vendor = {};  ///< required for Kind::vendor
  int priority = -1;        ///< 0-1000; negative: the kind's own
  Caps caps = {};
  /// Runs the operator. This or `kernel.run` must be set. Called from any thread; an exception
  /// counts as `failed`.
  std::function<Outcome(CallFrame&)> run = {};
  KernelFunctions kernel = {};
  /// Optional: accepts (empty), or refuses with a sentence. Pure and cheap; an exception makes it a
  /// broken verifier, which is told apart from a refusal.
  std::function<std::string(const Facts&)> verify = {};
  /// What `verify` looks at; nothing given: scalars, dtypes, ranks, device.
  std::optional<std::vector<FactRef>> verify_reads = {};
  /// What `kernel.plan` looks at; nothing given: everything.
  std::optional<std::vector<FactRef>> plan_reads = {};
  /// OPMUX_IMPL_*.
  uint32_t flags = 0;
  /// The schema text this was written against; empty: the operator's current one.
  std::string signature = {};
  std::string build_id = {};
};

}  // namespace opmux
