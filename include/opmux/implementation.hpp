#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/abi.h>
#include <opmux/detail/export.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

/// Capabilities of an implementation, as data: the calls that it accepts. opmux checks them in each
/// decision, compiles them into the guards of cached plans, and prints the violated condition when
/// it refuses a call. Properties that are not mentioned are not restricted.
///
///   opmux::Caps caps = opmux::Caps{}
///                          .dtypes({opmux::f32, opmux::bf16})
///                          .multiple_of("H", 16)
///                          .contiguous()
///                          .cpu_features("avx2,fma");
///
/// Every function adds a condition; all of them must hold. Names are those of the schema of the
/// operator: Runtime::implement() refuses a name that the schema does not have. Functions return
/// `*this` for chaining and do not fail. A plain value: copy it freely.
class Caps {
 public:
  /// Allowed element types of an argument.
  struct DTypes {
    std::string arg;  ///< Empty: every tensor argument that no other entry names.
    std::vector<DType> allowed;
  };
  /// A condition on one dimension.
  struct Dim {
    std::string dim;                     ///< A named dimension, or "rows".
    uint32_t relation = OPMUX_AT_LEAST;  ///< OPMUX_AT_LEAST, _AT_MOST, _MULTIPLE_OF, _EQUALS.
    int64_t value = 0;
  };
  /// Conditions on one tensor argument.
  struct Tensor {
    std::string arg = {};     ///< Empty: every tensor argument.
    uint32_t flags = 0;       ///< OPMUX_TENSOR_*.
    int min_rank = 0;         ///< Fewest dimensions.
    int max_rank = 0;         ///< Most dimensions; 0: no limit.
    uint32_t alignment = 0;   ///< Of the first element, in bytes; 0: any.
    std::string layout = {};  ///< Stride order such as "0213"; empty: any.
  };
  /// Allowed values of a scalar argument.
  struct Scalar {
    std::string arg;
    std::vector<int64_t> allowed;
  };

  /// Allowed element types, for every tensor argument that has no entry with its name, or for one
  /// argument. Reason on refusal: "caps.dtype".
  OPMUX_API Caps& dtypes(std::vector<DType> allowed);
  OPMUX_API Caps& dtypes(std::string arg, std::vector<DType> allowed);
  /// Conditions on a named dimension, or on "rows", the product of the leading dimensions. Reasons:
  /// "caps.multiple_of", "caps.at_least", "caps.at_most", "caps.equals".
  OPMUX_API Caps& multiple_of(std::string dim, int64_t n);
  OPMUX_API Caps& at_least(std::string dim, int64_t n);
  OPMUX_API Caps& at_most(std::string dim, int64_t n);
  OPMUX_API Caps& equals(std::string dim, int64_t n);
  /// Row-major without gaps, for one tensor argument or for all. Reason: "caps.contiguous". A
  /// policy may allow opmux to copy other tensors for such an implementation (`transforms`).
  OPMUX_API Caps& contiguous(std::string arg = "");
  /// The last dimension has stride 1; the others may have gaps. Reason: "caps.inner_contiguous".
  OPMUX_API Caps& inner_contiguous(std::string arg = "");
  /// absent: the implementation does not support this optional argument, so it is refused when the
  /// argument is given. present: it needs the argument. Reasons: "caps.absent", "caps.present".
  OPMUX_API Caps& absent(std::string arg);
  OPMUX_API Caps& present(std::string arg);
  /// Fewest and most dimensions of a tensor; with max 0 there is no upper limit. Reason:
  /// "caps.rank".
  OPMUX_API Caps& rank(std::string arg, int min, int max);
  /// Alignment of the first element in bytes: a power of two, at most 4096. Reason:
  /// "caps.alignment".
  OPMUX_API Caps& aligned(std::string arg, uint32_t bytes);
  /// Order of the dimensions by falling stride, as digits: "0213" is BHSD for a schema in BSHD.
  /// Reason: "caps.layout".
  OPMUX_API Caps& layout(std::string arg, std::string order);
  /// Values of an int, bool (0/1) or enum (position) argument that the implementation supports. A
  /// scalar without an entry must be supported with every value. Reason: "caps.scalar".
  OPMUX_API Caps& scalar(std::string arg, std::vector<int64_t> allowed);
  /// CPU features that are all needed, comma separated, as /proc/cpuinfo names them: "avx2,fma".
  /// Replaces an earlier list. Reason: "caps.cpu_features".
  OPMUX_API Caps& cpu_features(std::string needed);
  /// Type of device that holds the tensors, OPMUX_DEVICE_*; the CPU by default. Reason:
  /// "caps.device".
  OPMUX_API Caps& device(int32_t type);
  /// Range of device architectures, compared as numbers with dots between them ("8.6" is less than
  /// "8.10", "9" equals "9.0"); empty = open. The backend of the device states the architecture, or
  /// the program by PluginControl::set_architecture(). A device without one is refused, and so is
  /// the CPU unless the program states one. Reason: "caps.arch".
  OPMUX_API Caps& arch(std::string min, std::string max);
  /// Refused while the ambient fact `grad` is on. Reason: "caps.inference_only".
  OPMUX_API Caps& inference_only();

  /// The conditions as data; the functions above fill them in.
  std::vector<DTypes> dtype_rules;
  std::vector<Dim> dim_rules;
  std::vector<Tensor> tensor_rules;
  std::vector<Scalar> scalar_rules;
  std::string features;
  std::string min_arch, max_arch;
  int32_t device_type = OPMUX_DEVICE_CPU;
  bool no_grad = false;

 private:
  Caps& add_dim(std::string dim, uint32_t relation, int64_t value);
  Caps& add_flag(std::string arg, uint32_t flag);
};

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

/// The priority of an implementation for calls in which a dimension is in a range. Caps say what
/// the implementation can do, hints what it is good at; a hint refuses nothing. It replaces
/// Implementation::priority in the score, so policies rank above it as they do above a priority.
///
///   opmux::Hint few_rows{.dim = "rows", .most = 4, .priority = 150};
///   std::cout << few_rows.range() << "\n";  // rows <= 4
struct Hint {
  std::string dim;    ///< A named dimension of the schema, or "rows".
  int64_t least = 0;  ///< First size of the range.
  int64_t most = 0;   ///< Last size of the range; 0: no limit.
  int priority = 0;   ///< From 0 to 1000.

  /// The range as text: "rows <= 4", "5 <= rows <= 1024", "S >= 16".
  OPMUX_API std::string range() const;
};

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

  /// The queue of the device to enqueue on; null is its default stream.
  void* stream() const { return call_->stream; }

  /// Ends the call with a message that the caller sees: `return call.end(Outcome::failed, "...")`.
  /// The text is copied and truncated to the room that the caller provided.
  OPMUX_API Outcome end(Outcome outcome, std::string_view text) const;

  /// The C form, with workspace, thread pool and prepared state.
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

/// Facts of a call that a verifier may read: those that its `verify_reads` lists, or all with
/// OPMUX_IMPL_VERIFY_RECORDED. Valid while the verifier runs, on its thread.
class Facts {
 public:
  explicit Facts(const opmux_facts& facts) : facts_(&facts) {}
  /// The value of a fact, or nullopt if it is absent or not visible.
  std::optional<int64_t> get(uint32_t kind, std::string_view name) const {
    int64_t value = 0;
    if (facts_->get(facts_->context, kind, {name.data(), name.size()}, &value) == 0) return {};
    return value;
  }
  /// Size of a named dimension, or nullopt if it is absent or not visible.
  std::optional<int64_t> dim(std::string_view name) const { return get(OPMUX_FACT_DIM, name); }
  /// Says that the verifier reads something besides facts, such as an environment variable. opmux
  /// then asks it again for every call and logs `what` once ("dispatch.decided_each_time").
  void outside(std::string_view what) const { (void)get(OPMUX_FACT_OUTSIDE, what); }

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
  /// Priorities for ranges of a dimension. The first one whose range has the dimension of the call
  /// counts in place of `priority`.
  std::vector<Hint> hints = {};
  /// false: the provider is used only if it is switched on, by PluginControl::enable_backend() or,
  /// in Python, OPMUX_BACKEND_<NAME>. nullopt: as its other implementations say, on if none does.
  /// Implementations of one provider that state it must agree.
  std::optional<bool> default_enable = {};
  /// true: `run` enqueues its work on CallFrame::stream() and returns before it is done, as
  /// OPMUX_BACKEND_STREAM says for a backend in C. opmux then does not compare its results, does
  /// not measure its calls, and lists it as a suspect of errors that the device reports later. Must
  /// be the same for all implementations of one provider.
  bool stream = false;
  /// Calls that it accepts; see Caps.
  Caps caps = {};
  /// Runs the operator. Either this or `kernel.run` must be set. Called from any thread, several at
  /// a time. An exception counts as `failed`, with its text.
  detail::Function<Outcome(CallFrame&)> run = {};
  /// C functions instead of `run`; they win if both are set.
  KernelFunctions kernel = {};
  /// Optional check beyond `caps`: returns an empty string to accept, or a sentence to refuse
  /// ("verify.refused"). It must be pure and fast, because its answer is cached for all calls with
  /// equal facts, unless it calls Facts::outside(). An exception is reported as a broken verifier
  /// ("verify.broken") and refuses.
  detail::Function<std::string(const Facts&)> verify = {};
  /// Optional: returns an empty string if the implementation can run in this process, else the
  /// reason ("backend.unavailable"), for example that a driver is missing. Called when it is first
  /// a candidate, or listed, and not again; several threads may call it at that time. It must not
  /// call the runtime. An exception means that it is not available.
  detail::Function<std::string()> available = {};
  /// Facts that `verify` reads. nullopt: scalars, dtypes, ranks, device. With
  /// OPMUX_IMPL_VERIFY_RECORDED in `flags`, `verify` sees every fact and needs no list: opmux
  /// records the facts that it reads, and asks it again after it has read one for the first time.
  /// Each size of a dimension that it reads is decided separately, so compare sizes in `caps` where
  /// that is enough; more than 8 sizes are logged as "dispatch.many_values".
  std::optional<std::vector<FactRef>> verify_reads = {};
  /// Facts that `kernel.plan` depends on. nullopt: everything that it is shown, so that each shape,
  /// tag and value of a scalar is prepared separately.
  std::optional<std::vector<FactRef>> plan_reads = {};
  /// Scalars that `kernel.create` gets: {OPMUX_FACT_SCALAR, "group"}; others look absent to it.
  /// nullopt: all, so that a constant is packed again for each value of any scalar.
  std::optional<std::vector<FactRef>> create_reads = {};
  /// Promises and properties: OPMUX_IMPL_DETERMINISTIC, OPMUX_IMPL_VERIFY_RECORDED and others of
  /// abi.h.
  uint32_t flags = 0;
  /// The schema text that this was written against; empty: the current schema of the operator. It
  /// may lack trailing arguments with defaults; calls that set those then use other candidates.
  std::string signature = {};
  /// Identifies the build of the kernel in lockfiles and quarantines; may be empty.
  std::string build_id = {};
};

/// One implementation as `opmux list` shows it. Made by Runtime::list(), which asks backends
/// whether they are available.
struct ImplementationInfo {
  /// "rms_norm/simd.avx2", "simd", "default"; `vendor` is empty unless the kind is "vendor".
  std::string id, backend, kind, vendor;
  int priority = 0;  ///< From 0 to 1000, before boosts of a policy, where no hint applies.
  /// Whether this machine and process can run it; policy is not considered.
  bool available = false;
  std::string reason;                      ///< Why it is not available; empty if it is.
  uint64_t calls = 0;                      ///< Calls that ended ok since the runtime was created.
  uint32_t flags = 0;                      ///< Promises: OPMUX_IMPL_*.
  int32_t device_type = OPMUX_DEVICE_CPU;  ///< OPMUX_DEVICE_* of its backend.
  /// Whether its backend has separate memory, reached through PluginControl::device_access().
  bool own_memory = false;
  /// It keeps state, so it runs only in calls through an Instance ("caps.instance").
  bool needs_instance = false;
  /// "closed", or the worst state among the breakers of its classes of calls: "half open", "open",
  /// "isolated".
  std::string breaker = {};
  /// Attributes that its describe() reported about the constant that it packed last, in the order
  /// of the report: {"packed_bytes", "1048576"}, {"format", "panels of 8"}. Empty if it packed
  /// none.
  std::vector<std::pair<std::string, std::string>> instance = {};
  std::vector<Hint> hints = {};  ///< In the order of its author; the first that applies counts.
};

/// One operator with its implementations.
///
///   for (const opmux::OperatorInfo& op : runtime.list()) {
///     std::cout << op.name << ": " << op.implementations.size() << " implementations\n";
///   }
struct OperatorInfo {
  /// Name, canonical schema text, and one sentence; `summary` is empty except for standard
  /// operators.
  std::string name, schema, summary;
  std::vector<ImplementationInfo> implementations;  ///< Sorted by id.
};

}  // namespace opmux
