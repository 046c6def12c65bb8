// What oneDNN needs to run: made by plan(), used by run() without making anything.
#pragma once

#include <opmux/plugin.hpp>

#include <array>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

namespace opmux::backends::onednn {

// The CPU as oneDNN knows it; lives until the process ends.
const dnnl::engine& cpu();

// Throws plugin::Declined for a type that oneDNN has not.
dnnl::memory::data_type data_type_of(opmux_dtype dtype);

// Lets the calling thread start as many OpenMP threads as the call allows, until it goes.
class ThreadLimit {
 public:
  explicit ThreadLimit(const plugin::Call& call) : ThreadLimit(call.c().max_threads) {}
  explicit ThreadLimit(int threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_, allowed_;
};

// Turns what oneDNN says it cannot do, and its slow way of doing it, into a plugin::Declined.
// `make` returns a primitive descriptor.
template <class Make>
auto described(Make make) -> decltype(make(dnnl::primitive_attr())) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto declined = [](const char* text) {
    return plugin::Declined("onednn.unsupported", text);
  };
  try {
    auto descriptor = make(attributes);
    if (std::string_view(descriptor.impl_info_str()).starts_with("ref")) {
      throw declined("oneDNN has only its reference code for these layouts");
    }
    return descriptor;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw declined("oneDNN does not support these types or layouts");
  }
}

// A primitive with the descriptors of its arguments. Re-entrant: each run borrows its own set of
// memory objects, of which as many are kept as ran at the same time, up to a limit.
class Prepared {
 public:
  using Argument = std::pair<int, dnnl::memory::desc>;  // DNNL_ARG_*

  Prepared(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
           std::initializer_list<Argument> arguments);
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  bool takes_packed = false;  // a packed copy of the weight, where it has one

  uint64_t workspace() const { return scratchpad_.get_size(); }
  // `data` in the order of `arguments`.
  int32_t run(const plugin::Call& call, std::initializer_list<void*> data) const {
    return run(call, data, call.workspace());
  }
  // The same with its own part of the workspace.
  int32_t run(const plugin::Call& call, std::initializer_list<void*> data, void* scratchpad) const;
  // The same on this thread alone, for one of several that share a call. Throws if it fails.
  void run_here(std::initializer_list<void*> data, void* scratchpad) const;

 private:
  struct Binding;
  dnnl_status_t execute(std::initializer_list<void*> data, void* scratchpad, int threads) const;
  std::unique_ptr<Binding> take() const;
  void give_back(std::unique_ptr<Binding> binding) const;

  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
  std::vector<Argument> arguments_;
  mutable std::array<std::atomic<Binding*>, 16> idle_{};
};

// y = x w, whose data run() takes in this order.
std::unique_ptr<Prepared> prepared_product(const dnnl::memory::desc& y, const dnnl::memory::desc& x,
                                           const dnnl::memory::desc& w);

// Adds plan() and workspace() to an implementation whose `plan` returns a Prepared. A primitive
// divides its work by the number of threads that it is made under.
template <class Plan>
plugin::Impl& prepared_by(plugin::Impl& impl, Plan plan, plugin::Impl::Reads reads) {
  const auto limited = [plan](const plugin::Call& call) -> std::shared_ptr<void> {
    const ThreadLimit limit(call);
    return plan(call);
  };
  return impl.plan(limited, reads).workspace([](const plugin::Call& call) {
    return call.prepared<Prepared>()->workspace();
  });
}

}  // namespace opmux::backends::onednn
