/// Plugins in C++: a header-only layer over abi.h for authors of implementations. It needs abi.h
/// and the standard library, nothing to link.
///
/// Functions and lambdas become entries of the C tables; whatever they throw is caught and becomes
/// an outcome: std::bad_alloc is OPMUX_RESOURCE, everything else OPMUX_FAILED, with the text in the
/// error sink. A function that returns nothing has succeeded when it returns.
///
///   #include <opmux/plugin.hpp>
///   namespace op = opmux::plugin;
///
///   OPMUX_PLUGIN_ENTRY(acme) {
///     return op::answer(host, out, [] {
///       return op::Plugin{"acme", "1.0"}.add(
///           op::Backend{"acme", OPMUX_KIND_VENDOR}.vendor("acme").add(
///               op::Impl{"acme.twice", "plain"}
///                   .signature("acme.twice(out Tensor y[N], Tensor x[N])")
///                   .caps(op::Caps{}.dtypes({op::f32}).contiguous())
///                   .run([](const op::Call& call) {
///                     const op::TensorArg y = call.tensor(0), x = call.tensor(1);
///                     for (int64_t i = 0; i < x.dim(0); ++i)
///                       y.data<float>()[i] = 2 * x.data<float>()[i];
///                   })))
///           .schema("acme.twice(out Tensor y[N], Tensor x[N])");
///     });
///   }
///
/// Texts are borrowed: pass literals, or strings that live as long as the library is loaded.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace opmux::plugin {

inline constexpr opmux_dtype f32{OPMUX_DTYPE_FLOAT, 32, 1};
inline constexpr opmux_dtype f16{OPMUX_DTYPE_FLOAT, 16, 1};
inline constexpr opmux_dtype bf16{OPMUX_DTYPE_BFLOAT, 16, 1};
inline constexpr opmux_dtype i64{OPMUX_DTYPE_INT, 64, 1};
inline constexpr opmux_dtype i32{OPMUX_DTYPE_INT, 32, 1};
inline constexpr opmux_dtype i8{OPMUX_DTYPE_INT, 8, 1};
inline constexpr opmux_dtype u8{OPMUX_DTYPE_UINT, 8, 1};
inline constexpr opmux_dtype boolean{OPMUX_DTYPE_BOOL, 8, 1};

constexpr bool same(opmux_dtype a, opmux_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
constexpr opmux_str str(std::string_view text) { return {text.data(), text.size()}; }

/// Writes an outcome with its stable code (a literal) and a text, cut to what fits; returns it.
inline int32_t report(opmux_error* error, int32_t outcome, std::string_view code,
                      std::string_view text) noexcept {
  if (!error) return outcome;
  error->outcome = outcome;
  error->code = str(code);
  error->text_size = error->text ? std::min(text.size(), error->text_capacity) : 0;
  if (error->text_size > 0) std::memcpy(error->text, text.data(), error->text_size);
  return outcome;
}
/// Refuses before anything was touched: the next candidate runs.
inline int32_t decline(opmux_error* error, std::string_view code, std::string_view text) noexcept {
  return report(error, OPMUX_DECLINED, code, text);
}
/// The caller's fault.
inline int32_t invalid(opmux_error* error, std::string_view code, std::string_view text) noexcept {
  return report(error, OPMUX_INVALID_ARGUMENT, code, text);
}
/// Went wrong; outputs may be spoilt.
inline int32_t fail(opmux_error* error, std::string_view code, std::string_view text) noexcept {
  return report(error, OPMUX_FAILED, code, text);
}

/// Runs `body`; one that returns nothing is OPMUX_OK.
template <class Body>
int32_t outcome_of(Body& body) {
  if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
    body();
    return OPMUX_OK;
  } else {
    return body();
  }
}

#if defined(__cpp_exceptions)
/// Runs `body` and turns whatever it throws into an outcome.
template <class Body>
int32_t guarded(opmux_error* error, Body&& body) noexcept {
  try {
    return outcome_of(body);
  } catch (const std::bad_alloc&) {
    return report(error, OPMUX_RESOURCE, "plugin.memory", "out of memory");
  } catch (const std::exception& e) {
    return fail(error, "plugin.exception", e.what());
  } catch (...) {
    return fail(error, "plugin.exception", "threw something that is no std::exception");
  }
}
#else
template <class Body>
int32_t guarded(opmux_error*, Body&& body) noexcept {
  return outcome_of(body);
}
#endif

/// A tensor argument; absent if it was optional and not given. Only present() may then be asked.
class TensorArg {
 public:
  TensorArg() = default;
  explicit TensorArg(const opmux_tensor* tensor) : tensor_(tensor) {}

  bool present() const { return tensor_ != nullptr; }
  explicit operator bool() const { return present(); }
  const opmux_tensor& c() const { return *tensor_; }
  /// The first element, byte_offset applied.
  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(tensor_->data) + tensor_->byte_offset);
  }
  opmux_dtype dtype() const { return tensor_->dtype; }
  bool is(opmux_dtype dtype) const { return same(tensor_->dtype, dtype); }
  int rank() const { return tensor_->ndim; }
  /// Negative positions count from the last dimension; strides count elements.
  int64_t dim(int i) const { return tensor_->shape[i < 0 ? i + rank() : i]; }
  int64_t stride(int i) const { return tensor_->strides[i < 0 ? i + rank() : i]; }
  std::span<const int64_t> shape() const { return {tensor_->shape, size_t(rank())}; }
  std::span<const int64_t> strides() const { return {tensor_->strides, size_t(rank())}; }
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : shape()) product *= size;
    return product;
  }

 private:
  const opmux_tensor* tensor_ = nullptr;
};

/// One call: its arguments by position in the schema, and what the host lends to it.
class Call {
 public:
  explicit Call(const opmux_call& call) : call_(&call) {}

  const opmux_call& c() const { return *call_; }
  opmux_error* error() const { return call_->error; }
  bool present(uint32_t i) const { return tag(i) != OPMUX_ARG_NONE; }
  /// Throws, and so fails the call, if there is no tensor in this place; without exceptions in the
  /// language, it is then an absent one.
  TensorArg tensor(uint32_t i) const {
#if defined(__cpp_exceptions)
    if (tag(i) != OPMUX_ARG_TENSOR) throw std::invalid_argument("a required tensor is missing");
#else
    if (tag(i) != OPMUX_ARG_TENSOR) return {};
#endif
    return TensorArg{arg(i).value.tensor};
  }
  TensorArg optional_tensor(uint32_t i) const { return present(i) ? tensor(i) : TensorArg{}; }
  double f64(uint32_t i, double if_absent = 0) const {
    return present(i) ? arg(i).value.f64 : if_absent;
  }
  /// int, or the position of an enum's word.
  int64_t i64(uint32_t i, int64_t if_absent = 0) const {
    return present(i) ? arg(i).value.i64 : if_absent;
  }
  bool boolean(uint32_t i, bool if_absent = false) const { return i64(i, if_absent) != 0; }

  void* stream() const { return call_->stream; }
  void* workspace() const { return call_->workspace; }
  /// What plan() made, or null.
  template <class T>
  T* prepared() const {
    return call_->prepared ? static_cast<T*>(shared(call_->prepared).get()) : nullptr;
  }
  /// What create() made, or null.
  template <class T>
  T* instance() const {
    return call_->instance ? static_cast<T*>(shared(call_->instance).get()) : nullptr;
  }
  static std::shared_ptr<void>& shared(void* handle) {
    return *static_cast<std::shared_ptr<void>*>(handle);
  }

  bool parallel() const { return call_->max_threads > 1 && call_->parallel_for; }
  /// body(i) for each i in [0, count): on the engine's threads if it lent more than one, else here.
  /// The first exception that a body throws is thrown again from here.
  template <class Body>
  void for_each(int64_t count, Body&& body) const {
    if (!parallel() || count < 2) {
      for (int64_t i = 0; i < count; ++i) body(i);
      return;
    }
    Shared<std::remove_reference_t<Body>> state{&body, {}, nullptr};
    call_->parallel_for(call_->pool, count, &state, [](void* context, int64_t i) {
      auto& s = *static_cast<Shared<std::remove_reference_t<Body>>*>(context);
#if defined(__cpp_exceptions)
      try {
        (*s.body)(i);
      } catch (...) {
        if (!s.failed.test_and_set()) s.thrown = std::current_exception();
      }
#else
      (*s.body)(i);
#endif
    });
    if (state.thrown) std::rethrow_exception(state.thrown);
  }

 private:
  template <class Body>
  struct Shared {
    Body* body;
    std::atomic_flag failed;
    std::exception_ptr thrown;
  };
  const opmux_arg& arg(uint32_t i) const {
    const char* first = reinterpret_cast<const char*>(call_->args);
    return *reinterpret_cast<const opmux_arg*>(first + size_t{i} * call_->arg_stride);
  }
  uint32_t tag(uint32_t i) const { return i < call_->arg_count ? arg(i).tag : OPMUX_ARG_NONE; }

  const opmux_call* call_;
};

/// What a verifier may look at: the facts that it listed.
class Facts {
 public:
  explicit Facts(const opmux_facts& facts) : facts_(&facts) {}

  /// Empty if the fact is absent or was not listed.
  std::optional<int64_t> get(uint32_t kind, std::string_view name) const {
    int64_t value = 0;
    if (facts_->get(facts_->context, kind, str(name), &value) == 0) return std::nullopt;
    return value;
  }
  std::optional<int64_t> dtype(std::string_view arg) const { return get(OPMUX_FACT_DTYPE, arg); }
  std::optional<int64_t> dim(std::string_view name) const { return get(OPMUX_FACT_DIM, name); }
  std::optional<int64_t> scalar(std::string_view arg) const { return get(OPMUX_FACT_SCALAR, arg); }

 private:
  const opmux_facts* facts_;
};

/// What an implementation can do, as data that the host checks and explains. An empty argument name
/// means every tensor argument.
class Caps {
 public:
  Caps& dtypes(std::initializer_list<opmux_dtype> list) { return dtypes("", list); }
  Caps& dtypes(std::string_view arg, std::initializer_list<opmux_dtype> list) {
    dtype_lists_.emplace_back(list);
    dtypes_.push_back({sizeof(opmux_dtype_rule), uint32_t(list.size()), str(arg), nullptr});
    return *this;
  }
  Caps& at_least(std::string_view dim, int64_t n) { return rule(dim, OPMUX_AT_LEAST, n); }
  Caps& at_most(std::string_view dim, int64_t n) { return rule(dim, OPMUX_AT_MOST, n); }
  Caps& multiple_of(std::string_view dim, int64_t n) { return rule(dim, OPMUX_MULTIPLE_OF, n); }
  Caps& equals(std::string_view dim, int64_t n) { return rule(dim, OPMUX_EQUALS, n); }

  Caps& contiguous(std::string_view arg = "") { return tensor(arg, OPMUX_TENSOR_CONTIGUOUS); }
  Caps& inner_contiguous(std::string_view arg = "") {
    return tensor(arg, OPMUX_TENSOR_INNER_CONTIGUOUS);
  }
  Caps& must_be_absent(std::string_view arg) { return tensor(arg, OPMUX_TENSOR_ABSENT); }
  Caps& must_be_present(std::string_view arg) { return tensor(arg, OPMUX_TENSOR_PRESENT); }
  Caps& aligned(std::string_view arg, uint32_t bytes) { return tensor(arg, 0, 0, 0, bytes); }
  Caps& rank(std::string_view arg, int32_t min, int32_t max) { return tensor(arg, 0, min, max); }
  Caps& layout(std::string_view arg, std::string_view order) {
    return tensor(arg, 0, 0, 0, 0, order);
  }
  /// The values of an int, bool or enum argument that are honoured.
  Caps& scalar(std::string_view arg, std::initializer_list<int64_t> values) {
    scalar_lists_.emplace_back(values);
    scalars_.push_back({sizeof(opmux_scalar_rule), uint32_t(values.size()), str(arg), nullptr});
    return *this;
  }
  /// All needed, comma separated.
  Caps& cpu_features(std::string_view names) { return c_.cpu_features = str(names), *this; }
  Caps& arch(std::string_view min, std::string_view max) {
    c_.min_arch = str(min);
    c_.max_arch = str(max);
    return *this;
  }
  Caps& device_type(int32_t type) { return c_.device_type = type, *this; }
  Caps& inference_only() { return c_.flags |= OPMUX_CAPS_INFERENCE_ONLY, *this; }

  /// The C form; it points into this object, which must not move or change afterwards.
  const opmux_caps* c() {
    for (size_t i = 0; i < dtypes_.size(); ++i) dtypes_[i].dtypes = dtype_lists_[i].data();
    for (size_t i = 0; i < scalars_.size(); ++i) scalars_[i].values = scalar_lists_[i].data();
    c_.struct_size = sizeof c_;
    publish(dtypes_, c_.dtypes, c_.dtype_count, c_.dtype_stride);
    publish(dims_, c_.dims, c_.dim_count, c_.dim_stride);
    publish(tensors_, c_.tensors, c_.tensor_count, c_.tensor_stride);
    publish(scalars_, c_.scalars, c_.scalar_count, c_.scalar_stride);
    return &c_;
  }
  /// Points a C array field with its count and stride at a vector.
  template <class T>
  static void publish(const std::vector<T>& from, const T*& first, uint32_t& count,
                      uint32_t& stride) {
    first = from.data();
    count = uint32_t(from.size());
    stride = sizeof(T);
  }

 private:
  Caps& rule(std::string_view dim, uint32_t relation, int64_t value) {
    dims_.push_back({sizeof(opmux_dim_rule), str(dim), relation, value});
    return *this;
  }
  Caps& tensor(std::string_view arg, uint32_t flags, int32_t min = 0, int32_t max = 0,
               uint32_t alignment = 0, std::string_view order = "") {
    tensors_.push_back(
        {sizeof(opmux_tensor_rule), flags, str(arg), min, max, alignment, 0, str(order)});
    return *this;
  }

  opmux_caps c_{};
  std::vector<opmux_dtype_rule> dtypes_;
  std::vector<std::vector<opmux_dtype>> dtype_lists_;
  std::vector<opmux_dim_rule> dims_;
  std::vector<opmux_tensor_rule> tensors_;
  std::vector<opmux_scalar_rule> scalars_;
  std::vector<std::vector<int64_t>> scalar_lists_;
};

/// One implementation of one operator. Later builders copy it; nothing of it is shared.
class Impl {
 public:
  using Args = std::span<const opmux_arg>;
  using Reads = std::initializer_list<std::pair<uint32_t, std::string_view>>;

  Impl(std::string_view op, std::string_view variant) {
    c_.struct_size = sizeof c_;
    c_.op = str(op);
    c_.variant = str(variant);
    c_.priority = -1;
  }
  /// The schema text it was written against.
  Impl& signature(std::string_view text) { return c_.signature = str(text), *this; }
  /// 0-1000; without it the kind's own.
  Impl& priority(int32_t value) { return c_.priority = value, *this; }
  Impl& flags(uint32_t flags) { return c_.flags |= flags, *this; }
  Impl& caps(const Caps& caps) { return caps_ = caps, *this; }

  /// fn(const Call&) -> outcome or nothing.
  template <class Fn>
  Impl& run(Fn fn) {
    run_ = [fn](const Call& call) { return guarded(call.error(), [&] { return fn(call); }); };
    c_.run = [](void* self, const opmux_call* call) { return of(self).run_(Call{*call}); };
    return *this;
  }
  /// fn(const Facts&, opmux_error* why) -> OPMUX_OK or decline(why, ...). Only the facts in `reads`
  /// exist for it; no list means scalars, dtypes, ranks and the device.
  Impl& verify(std::function<int32_t(const Facts&, opmux_error*)> fn, Reads reads = {}) {
    verify_ = std::move(fn);
    list(reads, verify_reads_);
    c_.verify = [](void* self, const opmux_facts* facts, opmux_error* why) {
      return guarded(why, [&] { return of(self).verify_(Facts{*facts}, why); });
    };
    return *this;
  }
  /// Makes what run() gets from prepared<T>(); depends on the facts in `reads`, by default on all.
  Impl& plan(std::function<std::shared_ptr<void>(const Call&)> fn, Reads reads = {}) {
    plan_ = std::move(fn);
    list(reads, plan_reads_);
    c_.plan = [](void* self, const opmux_call* call, void** prepared) {
      return guarded(call->error,
                     [&] { *prepared = new std::shared_ptr<void>(of(self).plan_(Call{*call})); });
    };
    c_.plan_free = release;
    return *this;
  }
  /// Bytes that run() wants; one that throws asks for more than there is, so that run() is not
  /// called.
  Impl& workspace(std::function<uint64_t(const Call&)> fn) {
    workspace_ = std::move(fn);
    c_.workspace = [](void* self, const opmux_call* call) -> uint64_t {
      uint64_t bytes = UINT64_MAX;
      guarded(call->error, [&] { bytes = of(self).workspace_(Call{*call}); });
      return bytes;
    };
    return *this;
  }
  /// Makes an instance, which run() gets from instance<T>(); load() hands the parameters to it.
  Impl& stateful(std::function<std::shared_ptr<void>(Args)> create,
                 std::function<int32_t(void*, Args)> load) {
    create_ = std::move(create);
    load_ = std::move(load);
    c_.create = [](void* self, const opmux_arg* options, uint32_t count, void** instance,
                   opmux_error* error) {
      return guarded(error, [&] {
        *instance = new std::shared_ptr<void>(of(self).create_(Args{options, count}));
      });
    };
    c_.load = [](void* self, void* instance, const opmux_arg* params, uint32_t count,
                 opmux_error* error) {
      return guarded(
          error, [&] { return of(self).load_(Call::shared(instance).get(), Args{params, count}); });
    };
    c_.destroy = release;
    return *this;
  }

 private:
  friend class Backend;
  static Impl& of(void* self) { return *static_cast<Impl*>(self); }
  static void release(void*, void* handle) { delete static_cast<std::shared_ptr<void>*>(handle); }
  static void list(Reads reads, std::vector<opmux_fact>& into) {
    for (const auto& [kind, name] : reads) into.push_back({sizeof(opmux_fact), kind, str(name)});
  }
  opmux_impl seal() {
    c_.user_data = this;
    c_.caps = caps_.c();
    Caps::publish(verify_reads_, c_.verify_reads, c_.verify_reads_count, c_.verify_reads_stride);
    Caps::publish(plan_reads_, c_.plan_reads, c_.plan_reads_count, c_.plan_reads_stride);
    return c_;
  }

  opmux_impl c_{};
  Caps caps_;
  std::vector<opmux_fact> verify_reads_, plan_reads_;
  std::function<int32_t(const Call&)> run_;
  std::function<int32_t(const Facts&, opmux_error*)> verify_;
  std::function<std::shared_ptr<void>(const Call&)> plan_;
  std::function<uint64_t(const Call&)> workspace_;
  std::function<std::shared_ptr<void>(Args)> create_;
  std::function<int32_t(void*, Args)> load_;
};

/// A set of implementations with one availability probe.
class Backend {
 public:
  Backend(std::string_view name, int32_t kind, int32_t device_type = OPMUX_DEVICE_CPU) {
    c_.struct_size = sizeof c_;
    c_.name = str(name);
    c_.kind = kind;
    c_.device_type = device_type;
    c_.priority = -1;
  }
  /// Required for OPMUX_KIND_VENDOR.
  Backend& vendor(std::string_view name) { return c_.vendor = str(name), *this; }
  Backend& priority(int32_t value) { return c_.priority = value, *this; }
  Backend& flags(uint32_t flags) { return c_.flags |= flags, *this; }
  Backend& device(const opmux_device_table* table) { return c_.device = table, *this; }
  /// fn(opmux_error* why) -> OPMUX_OK or decline(why, ...).
  Backend& available(std::function<int32_t(opmux_error*)> fn) {
    available_ = std::move(fn);
    c_.is_available = [](void* self, opmux_error* why) {
      return guarded(why, [&] { return static_cast<Backend*>(self)->available_(why); });
    };
    return *this;
  }
  Backend& add(const Impl& impl) { return impls_.push_back(impl), *this; }

 private:
  friend class Plugin;
  opmux_backend seal() {
    sealed_.clear();
    for (Impl& impl : impls_) sealed_.push_back(impl.seal());
    c_.user_data = this;
    Caps::publish(sealed_, c_.impls, c_.impl_count, c_.impl_stride);
    return c_;
  }

  opmux_backend c_{};
  std::function<int32_t(opmux_error*)> available_;
  std::vector<Impl> impls_;
  std::vector<opmux_impl> sealed_;
};

/// Everything that a plugin brings; owns the storage of all its descriptors.
class Plugin {
 public:
  Plugin(std::string_view name, std::string_view version) {
    c_.struct_size = sizeof c_;
    c_.abi_major = OPMUX_ABI_MAJOR;
    c_.abi_minor = OPMUX_ABI_MINOR;
    c_.name = str(name);
    c_.version = str(version);
  }
  Plugin& vendor(std::string_view name) { return c_.vendor = str(name), *this; }
  Plugin& build_id(std::string_view id) { return c_.build_id = str(id), *this; }
  Plugin& flags(uint32_t flags) { return c_.flags |= flags, *this; }
  Plugin& add(const Backend& backend) { return backends_.push_back(backend), *this; }
  /// An operator of the plugin's own, named "vendor.name".
  Plugin& schema(std::string_view text) {
    return schemas_.push_back({sizeof(opmux_schema_text), 0, str(text)}), *this;
  }
  /// fn(args) -> the answer, or nothing for "no answer".
  Plugin& point(std::string_view signature, std::string_view backend,
                std::function<std::optional<opmux_arg>(Impl::Args)> fn) {
    points_.push_back({sizeof(opmux_point), 0, str(signature), str(backend), nullptr, ask});
    answers_.push_back(std::move(fn));
    return *this;
  }
  /// fn(const opmux_host*) and fn() -> outcome or nothing; they may throw.
  template <class Fn>
  Plugin& init(Fn fn) {
    init_ = [fn](const opmux_host* host, opmux_error* error) {
      return guarded(error, [&] { return fn(host); });
    };
    c_.init = [](void* self, const opmux_host* host, opmux_error* error) {
      return static_cast<Plugin*>(self)->init_(host, error);
    };
    return *this;
  }
  template <class Fn>
  Plugin& self_test(Fn fn) {
    test_ = [fn](opmux_error* error) { return guarded(error, fn); };
    c_.self_test = [](void* self, opmux_error* error) {
      return static_cast<Plugin*>(self)->test_(error);
    };
    return *this;
  }
  Plugin& shutdown(std::function<void()> fn) {
    shutdown_ = std::move(fn);
    c_.shutdown = [](void* self) { guarded(nullptr, static_cast<Plugin*>(self)->shutdown_); };
    return *this;
  }

  /// Fixes all addresses; the object must stay where it is from then on. `answer` calls it.
  void seal() {
    sealed_.clear();
    for (Backend& backend : backends_) sealed_.push_back(backend.seal());
    for (size_t i = 0; i < points_.size(); ++i) points_[i].user_data = &answers_[i];
    c_.user_data = this;
    Caps::publish(sealed_, c_.backends, c_.backend_count, c_.backend_stride);
    Caps::publish(schemas_, c_.operators, c_.operator_count, c_.operator_stride);
    Caps::publish(points_, c_.points, c_.point_count, c_.point_stride);
  }
  /// Writes as much as the host's struct holds.
  int32_t write(opmux_plugin* out) const noexcept {
    const uint32_t size = std::min(out->struct_size, uint32_t{sizeof c_});
    std::memcpy(out, &c_, size);
    std::memcpy(out, &size, sizeof size);
    return OPMUX_OK;
  }

 private:
  using Answer = std::function<std::optional<opmux_arg>(Impl::Args)>;
  static int32_t ask(void* fn, const opmux_arg* args, uint32_t count, opmux_arg* answer) {
    return guarded(nullptr, [&]() -> int32_t {
      const std::optional<opmux_arg> given = (*static_cast<Answer*>(fn))(Impl::Args{args, count});
      if (!given) return OPMUX_DECLINED;
      *answer = *given;
      return OPMUX_OK;
    });
  }

  opmux_plugin c_{};
  std::vector<Backend> backends_;
  std::vector<opmux_backend> sealed_;
  std::vector<opmux_schema_text> schemas_;
  std::vector<opmux_point> points_;
  std::vector<Answer> answers_;
  std::function<int32_t(const opmux_host*, opmux_error*)> init_;
  std::function<int32_t(opmux_error*)> test_;
  std::function<void()> shutdown_;
};

/// The body of a query function: `build` makes the Plugin, once; it then lives until the process
/// ends. A struct_size too small for its own first field is refused.
template <class Build>
int32_t answer(const opmux_host*, opmux_plugin* out, Build build) noexcept {
  static_assert(std::is_empty_v<Build>,
                "pass a lambda without captures: it is called once per type");
  if (!out || out->struct_size < sizeof out->struct_size) return OPMUX_INVALID_ARGUMENT;
  return guarded(nullptr, [&] {
    static const Plugin* plugin = [&] {
      auto made = std::make_unique<Plugin>(build());
      made->seal();
      return made.release();
    }();
    return plugin->write(out);
  });
}

}  // namespace opmux::plugin
