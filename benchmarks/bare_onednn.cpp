#include "bare.hpp"

#include <memory>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

extern "C" void omp_set_num_threads(int);

namespace opmux_bare {
namespace {

using dnnl::memory;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory at(const memory::desc& desc, const void* data) {
  return {desc, cpu(), const_cast<void*>(data)};
}

/// A primitive with its memory objects, as a program keeps them that calls oneDNN repeatedly with
/// the same sizes.
struct Ready {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  dnnl::stream stream{cpu()};
};

Call call(std::shared_ptr<Ready> ready) {
  return [ready = std::move(ready)] {
    ready->primitive.execute(ready->stream, ready->arguments);
    ready->stream.wait();
  };
}

/// Makes the caller pass the scratchpad as one more argument, as opmux does.
dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// Copies `from` into the layout `wanted`, unless it already has that layout.
memory packed(memory from, const memory::desc& wanted) {
  if (from.get_desc() == wanted) return from;
  memory copy(wanted, cpu());
  dnnl::stream stream(cpu());
  dnnl::reorder(from, copy).execute(stream, from, copy);
  stream.wait();
  return copy;
}

}  // namespace

Call onednn_product(const Product& p) try {
  omp_set_num_threads(1);
  const auto type = p.bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  using Tag = memory::format_tag;
  const memory::desc a({p.m, p.k}, type, Tag::ab), y({p.m, p.n}, type, Tag::ab);
  const memory::desc plain({p.k, p.n}, type, p.transposed ? Tag::ba : Tag::ab);
  const memory::desc b = p.packed ? memory::desc({p.k, p.n}, type, Tag::any) : plain;
  const dnnl::matmul::primitive_desc descriptor(cpu(), a, b, y, own_scratchpad());
  const memory weights = packed(at(plain, p.b), descriptor.weights_desc());
  auto ready = std::make_shared<Ready>(
      Ready{dnnl::matmul(descriptor),
            {{DNNL_ARG_SRC, at(a, p.a)}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, at(y, p.y)}}});
  if (const memory::desc scratchpad = descriptor.scratchpad_desc(); scratchpad.get_size() > 0) {
    ready->arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(scratchpad, cpu()));
  }
  return call(std::move(ready));
} catch (const dnnl::error&) {
  return {};
}

Call onednn_softmax(const Rows& r) try {
  omp_set_num_threads(1);
  const auto type = r.bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::desc desc({r.rows, r.columns}, type, memory::format_tag::ab);
  const dnnl::softmax_forward::primitive_desc descriptor(
      cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, desc, desc, 1);
  return call(std::make_shared<Ready>(
      Ready{dnnl::softmax_forward(descriptor),
            {{DNNL_ARG_SRC, at(desc, r.x)}, {DNNL_ARG_DST, at(desc, r.y)}}}));
} catch (const dnnl::error&) {
  return {};
}

}  // namespace opmux_bare
