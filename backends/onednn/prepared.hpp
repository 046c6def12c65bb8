// oneDNN primitives created by plan() and executed by run(), which creates no primitives.
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

// oneDNN's CPU engine; never destroyed.
const dnnl::engine& cpu();

// Throws plugin::Declined for a type that oneDNN does not support.
dnnl::memory::data_type data_type_of(opmux_dtype dtype);

// Limits the OpenMP threads that the calling thread may start; the destructor restores the previous
// limit.
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

// Creates a primitive descriptor with `make`. Throws plugin::Declined if oneDNN does not support
// the case or has only slow reference code for it.
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

// A primitive with the descriptors of its arguments. Thread-safe: each run borrows one set of
// memory objects; up to idle_.size() sets are kept for reuse.
class Prepared {
 public:
  using Argument = std::pair<int, dnnl::memory::desc>;  // DNNL_ARG_*

  Prepared(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
           std::initializer_list<Argument> arguments);
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  bool takes_packed = false;  // Whether it multiplies with the packed copy of the weight.

  uint64_t workspace() const { return scratchpad_.get_size(); }
  // `data` has the order of `arguments` in the constructor.
  int32_t run(const plugin::Call& call, std::initializer_list<void*> data) const {
    return run(call, data, call.workspace());
  }
  // Like run() above, with an explicit scratchpad.
  int32_t run(const plugin::Call& call, std::initializer_list<void*> data, void* scratchpad) const;
  // Runs on the calling thread only, for one of several threads that share a call. Throws on
  // failure.
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

// Prepares y = x w; run() takes their data in this order.
std::unique_ptr<Prepared> prepared_product(const dnnl::memory::desc& y, const dnnl::memory::desc& x,
                                           const dnnl::memory::desc& w);

// Adds plan() and workspace() to an implementation whose `plan` returns a Prepared. oneDNN divides
// a primitive's work by the number of threads at creation, so plan() runs under the call's thread
// limit.
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
