#include "backends/onednn/prepared.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

// Declares the two OpenMP functions used here, because not every compiler ships omp.h.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace opmux::backends::onednn {
namespace {

std::string refusal(dnnl_status_t status) {
  return "oneDNN execution failed with status " + std::to_string(status);
}

}  // namespace

const dnnl::engine& cpu() {
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::memory::data_type data_type_of(opmux_dtype dtype) {
  using Type = dnnl::memory::data_type;
  if (plugin::same(dtype, plugin::f32)) return Type::f32;
  if (plugin::same(dtype, plugin::bf16)) return Type::bf16;
  if (plugin::same(dtype, plugin::f16)) return Type::f16;
  if (plugin::same(dtype, plugin::i8)) return Type::s8;
  throw plugin::Declined("onednn.dtype", "oneDNN does not support this element type");
}

ThreadLimit::ThreadLimit(int threads)
    : before_(omp_get_max_threads()), allowed_(std::max(1, threads)) {
  if (allowed_ != before_) omp_set_num_threads(allowed_);
}

ThreadLimit::~ThreadLimit() {
  if (allowed_ != before_) omp_set_num_threads(before_);
}

struct Prepared::Binding {
  dnnl::stream stream{cpu()};
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;

  void add(int argument, const dnnl::memory::desc& desc) {
    memories.emplace_back(desc, cpu(), nullptr);
    arguments.push_back({argument, memories.back().get()});
  }
};

Prepared::Prepared(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
                   std::initializer_list<Argument> arguments)
    : primitive_(primitive), scratchpad_(descriptor.scratchpad_desc()), arguments_(arguments) {
  give_back(take());
}

Prepared::~Prepared() {
  for (std::atomic<Binding*>& place : idle_) {
    const std::unique_ptr<Binding> idle(place.load(std::memory_order_acquire));
  }
}

std::unique_ptr<Prepared::Binding> Prepared::take() const {
  for (std::atomic<Binding*>& place : idle_) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    if (Binding* idle = place.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<Binding>(idle);
    }
  }
  auto made = std::make_unique<Binding>();
  for (const auto& [argument, desc] : arguments_) made->add(argument, desc);
  if (workspace() != 0) made->add(DNNL_ARG_SCRATCHPAD, scratchpad_);
  return made;
}

void Prepared::give_back(std::unique_ptr<Binding> binding) const {
  for (std::atomic<Binding*>& place : idle_) {
    Binding* empty = nullptr;
    if (place.load(std::memory_order_relaxed) == nullptr &&
        place.compare_exchange_strong(empty, binding.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
      static_cast<void>(binding.release());
      return;
    }
  }
}

dnnl_status_t Prepared::execute(std::initializer_list<void*> data, void* scratchpad,
                                int threads) const {
  std::unique_ptr<Binding> binding = take();
  size_t at = 0;
  for (void* pointer : data) {
    dnnl_memory_set_data_handle(binding->arguments[at++].memory, pointer);
  }
  if (workspace() != 0) {
    dnnl_memory_set_data_handle(binding->arguments[at].memory, scratchpad);
  }
  const ThreadLimit limit(threads);
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), binding->stream.get(),
                                                      static_cast<int>(binding->arguments.size()),
                                                      binding->arguments.data());
  give_back(std::move(binding));
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  return status;
}

std::unique_ptr<Prepared> prepared_product(const dnnl::memory::desc& y, const dnnl::memory::desc& x,
                                           const dnnl::memory::desc& w) {
  const auto descriptor = described([&](const dnnl::primitive_attr& attributes) {
    return dnnl::matmul::primitive_desc(cpu(), x, w, y, attributes);
  });
  return std::make_unique<Prepared>(
      descriptor, dnnl::matmul(descriptor),
      std::initializer_list<Prepared::Argument>{
          {DNNL_ARG_DST, y}, {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}});
}

int32_t Prepared::run(const plugin::Call& call, std::initializer_list<void*> data,
                      void* scratchpad) const {
  const dnnl_status_t status = execute(data, scratchpad, call.c().max_threads);
  return status == dnnl_success ? OPMUX_OK
                                : plugin::fail(call.error(), "onednn.execute", refusal(status));
}

void Prepared::run_here(std::initializer_list<void*> data, void* scratchpad) const {
  const dnnl_status_t status = execute(data, scratchpad, 1);
  if (status != dnnl_success) throw std::runtime_error(refusal(status));
}

}  // namespace opmux::backends::onednn
