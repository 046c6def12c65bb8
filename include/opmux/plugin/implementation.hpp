/// One implementation of an operator. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/plugin/call.hpp>
#include <opmux/plugin/caps.hpp>
#include <opmux/plugin/facts.hpp>
#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// Receives the attributes that describe() reports. Valid during describe().
class Node {
 public:
  explicit Node(const opmux_node_sink& sink) : sink_(&sink) {}
  /// Reports one attribute; the host copies both texts.
  void attribute(std::string_view key, std::string_view value) const {
    sink_->attribute(sink_->context, str(key), str(value));
  }

 private:
  const opmux_node_sink* sink_;
};

/// One implementation of one operator: its functions and the calls that it accepts.
///
///   namespace op = opmux::plugin;
///   op::Impl impl =
///       op::Impl{"softmax", "rows"}
///           .signature("softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)")
///           .caps(op::Caps{}.dtypes({op::f32}).contiguous())
///           .flags(OPMUX_IMPL_DETERMINISTIC)
///           .workspace([](const op::Call& call) -> uint64_t {
///             return 4 * static_cast<uint64_t>(call.tensor(1).dim(-1));
///           })
///           .run([](const op::Call& call) -> int32_t {
///             return op::fail(call.error(), "acme.todo", "not written yet");
///           });
///
/// Functions return *this for chaining. Backend::add() copies the object. Functions of the plugin
/// may be called from several threads at a time unless flags() has OPMUX_IMPL_SERIAL; they may
/// throw.
class Impl {
 public:
  using Args = std::span<const opmux_arg>;
  using Reads = std::initializer_list<std::pair<uint32_t, std::string_view>>;

  /// Operator and variant; the id becomes "op/backend.variant".
  Impl(std::string_view op, std::string_view variant) {
    c_.struct_size = sizeof c_;
    c_.op = str(op);
    c_.variant = str(variant);
    c_.priority = -1;
  }
  /// The schema text this was written against; required.
  Impl& signature(std::string_view text) { return c_.signature = str(text), *this; }
  /// 0-1000; the default of the kind if not set.
  Impl& priority(int32_t value) { return c_.priority = value, *this; }
  /// Priority for calls in which a dimension, or "rows", is from `least` to `most` (0: no limit),
  /// in place of priority(). The first hint whose range has the call's dimension counts.
  /// Capabilities say what the implementation can do, hints what it is good at:
  /// hint("rows", 0, 4, 150).
  Impl& hint(std::string_view dim, int64_t least, int64_t most, int32_t priority) {
    hints_.push_back({sizeof(opmux_hint), priority, str(dim), least, most});
    return *this;
  }
  /// Adds OPMUX_IMPL_*.
  Impl& flags(uint32_t flags) { return c_.flags |= flags, *this; }
  /// Calls that it accepts; all calls if not set.
  Impl& caps(const Caps& caps) { return caps_ = caps, *this; }

  /// fn(const Call&) computes the outputs. It returns an outcome, or void for success. Required.
  template <class Fn>
  Impl& run(Fn fn) {
    run_ = [fn](const Call& call) { return guarded(call.error(), [&] { return fn(call); }); };
    c_.run = [](void* self, const opmux_call* call) { return of(self).run_(Call{*call}); };
    return *this;
  }
  /// fn returns OPMUX_OK, or decline(why, ...) to refuse. It sees the facts in `reads`; an empty
  /// list means scalars, dtypes, ranks and the device. It must be pure and fast: answers are
  /// cached. With flags(OPMUX_IMPL_VERIFY_RECORDED) it sees all facts, and the host records those
  /// that it reads.
  Impl& verify(std::function<int32_t(const Facts&, opmux_error*)> fn, Reads reads = {}) {
    verify_ = std::move(fn);
    list(reads, verify_reads_);
    c_.verify = [](void* self, const opmux_facts* facts, opmux_error* why) {
      return guarded(why, [&] { return of(self).verify_(Facts{*facts}, why); });
    };
    return *this;
  }
  /// A verifier that refuses a call in which a listed tensor has another dtype than the first one:
  /// same_dtype({dtype_of("x"), dtype_of("weight")}). Absent tensors are accepted. Replaces
  /// verify().
  Impl& same_dtype(Reads dtypes) {
    const std::vector<std::pair<uint32_t, std::string_view>> listed(dtypes);
    return verify(
        [listed](const Facts& facts, opmux_error* why) -> int32_t {
          const std::string_view first = listed.front().second;
          const std::optional<int64_t> wanted = facts.dtype(first);
          for (const auto& [kind, arg] : listed) {
            if (facts.dtype(arg).value_or(*wanted) == *wanted) continue;
            return decline(why, "verify.dtype",
                           std::string(arg) + " must have the dtype of " + std::string(first));
          }
          return OPMUX_OK;
        },
        dtypes);
  }
  /// fn returns an object that run() gets from prepared<T>(), such as a compiled primitive. It is
  /// made once for calls that agree in the facts in `reads` (default: everything that fn is shown
  /// except contents and addresses of tensors) and shared between threads. Throw Declined to let
  /// the next candidate run.
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
  /// fn returns the bytes of scratch memory that run() needs. It may read everything in the call
  /// except the contents and addresses of tensors; the host asks again when that changes. If fn
  /// throws, the host sees a size that cannot be allocated, so run() is not called.
  Impl& workspace(std::function<uint64_t(const Call&)> fn) {
    workspace_ = std::move(fn);
    c_.workspace = [](void* self, const opmux_call* call) -> uint64_t {
      uint64_t bytes = UINT64_MAX;
      guarded(call->error, [&] { bytes = of(self).workspace_(Call{*call}); });
      return bytes;
    };
    return *this;
  }
  /// For packed constants and state: `create` returns an object, which run() gets from
  /// instance<T>(); `load` gets that object and the constant, and packs it. One object is made for
  /// each Constant and each set of values of the options that `create` gets: the arguments that are
  /// not tensors. In calls through an Instance of the program, `create` gets the options and `load`
  /// the tensors that the Instance fixes, once for each Instance. For an operator without `const`
  /// arguments, run() is called only through an Instance, and always has its object.
  Impl& stateful(std::function<std::shared_ptr<void>(Args)> create,
                 std::function<int32_t(void*, Args)> load = {}) {
    create_ = std::move(create);
    load_ = std::move(load);
    c_.create = [](void* self, const opmux_arg* options, uint32_t count, void** instance,
                   opmux_error* error) {
      return guarded(error, [&] {
        *instance = new std::shared_ptr<void>(of(self).create_(Args{options, count}));
      });
    };
    c_.destroy = release;
    if (!load_) return *this;
    c_.load = [](void* self, void* instance, const opmux_arg* params, uint32_t count,
                 opmux_error* error) {
      return guarded(
          error, [&] { return of(self).load_(Call::shared(instance).get(), Args{params, count}); });
    };
    return *this;
  }
  /// Restricts the options that `create` gets to the listed facts, of kind OPMUX_FACT_SCALAR:
  /// create_reads({{OPMUX_FACT_SCALAR, "group"}}). Without it, a call with another value of any
  /// scalar packs the constant again. An empty list means that objects depend on no scalar.
  Impl& create_reads(Reads reads) {
    list(reads, create_reads_);
    create_reads_all_ = false;
    return *this;
  }
  /// fn(void* instance, const Node&) reports attributes of an instance. The host reads
  /// "packed_bytes" for its limit; without it the size of the constant counts.
  Impl& describe(std::function<void(void*, const Node&)> fn) {
    describe_ = std::move(fn);
    c_.describe = [](void* self, void* instance, const opmux_node_sink* sink) {
      return guarded(nullptr,
                     [&] { of(self).describe_(Call::shared(instance).get(), Node{*sink}); });
    };
    return *this;
  }
  /// describe() that reports only the bytes of an instance.
  Impl& packed_bytes(std::function<uint64_t(void*)> fn) {
    return describe([fn = std::move(fn)](void* instance, const Node& node) {
      node.attribute("packed_bytes", std::to_string(fn(instance)));
    });
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
    Caps::publish(create_reads_, c_.create_reads, c_.create_reads_count, c_.create_reads_stride);
    Caps::publish(hints_, c_.hints, c_.hint_count, c_.hint_stride);
    // An empty list needs an address, because null stands for all options.
    static constexpr opmux_fact kNone{};
    if (!create_reads_all_ && create_reads_.empty()) c_.create_reads = &kNone;
    return c_;
  }

  opmux_impl c_{};
  Caps caps_;
  std::vector<opmux_fact> verify_reads_, plan_reads_, create_reads_;
  std::vector<opmux_hint> hints_;
  bool create_reads_all_ = true;
  std::function<int32_t(const Call&)> run_;
  std::function<int32_t(const Facts&, opmux_error*)> verify_;
  std::function<std::shared_ptr<void>(const Call&)> plan_;
  std::function<uint64_t(const Call&)> workspace_;
  std::function<std::shared_ptr<void>(Args)> create_;
  std::function<int32_t(void*, Args)> load_;
  std::function<void(void*, const Node&)> describe_;
};

}  // namespace opmux::plugin
