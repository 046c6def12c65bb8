#include "backends/onednn/packed_weight.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace opmux::backends::onednn {
namespace {

using Memory = dnnl::memory;

constexpr uint32_t kWeight = 2;

Memory::desc plain_desc(const plugin::TensorArg& weight) {
  return {{weight.dim(1), weight.dim(0)}, data_type_of(weight.dtype()), {1, weight.dim(1)}};
}

// Depth including the padding described at PackedWeight. Only bf16 weights of one page per row are
// padded, because f32 and i8 gain nothing from it.
int64_t packed_depth(const plugin::TensorArg& weight) {
  constexpr int64_t kPage = 2048, kZeros = 32;  // elements
  const int64_t depth = weight.dim(1);
  return weight.is(plugin::bf16) && depth == kPage ? depth + kZeros : depth;
}

void* large_pages(size_t bytes) {
  constexpr size_t kLarge = size_t{2} << 20, kSmall = 4096;
  const size_t page = bytes < kLarge ? kSmall : kLarge;
  const size_t whole = (bytes + page - 1) / page * page;
  void* const room = std::aligned_alloc(page, whole);
  if (room == nullptr) throw std::bad_alloc();
  // madvise is a hint: without huge pages the memory stays as it is.
  if (page == kLarge) static_cast<void>(madvise(room, whole, MADV_HUGEPAGE));
  return room;
}

// The blocks that oneDNN prefers for 64 rows, where blocking pays off most.
Memory::desc packed_desc(const plugin::TensorArg& weight) {
  constexpr int64_t kRows = 64;
  const auto type = data_type_of(weight.dtype());
  const auto sums = type == Memory::data_type::s8 ? Memory::data_type::s32 : type;
  const int64_t width = weight.dim(0), depth = packed_depth(weight);
  const auto descriptor = described([&](const dnnl::primitive_attr& attributes) {
    return dnnl::matmul::primitive_desc(cpu(), Memory::desc({kRows, depth}, type, {depth, 1}),
                                        Memory::desc({depth, width}, type, Memory::format_tag::any),
                                        Memory::desc({kRows, width}, sums, {width, 1}), attributes);
  });
  return descriptor.weights_desc();
}

// The weight in place, or a copy with zero padding after its depth.
Memory plain_weight(const plugin::TensorArg& weight) {
  const int64_t width = weight.dim(0), depth = weight.dim(1), all = packed_depth(weight);
  if (all == depth) return {plain_desc(weight), cpu(), weight.data()};
  Memory copy({{all, width}, data_type_of(weight.dtype()), {1, all}}, cpu());
  copy_rows(weight.data<uint16_t>(), width, depth, all,
            static_cast<uint16_t*>(copy.get_data_handle()));
  return copy;
}

int32_t load_weight(void* instance, plugin::Impl::Args params) {
  const ThreadLimit limit(1);
  const plugin::TensorArg weight(params[kWeight].value.tensor);
  Memory plain = plain_weight(weight);
  const Memory::desc desc = packed_desc(weight);
  auto* const made = static_cast<PackedWeight*>(instance);
  made->room.reset(large_pages(desc.get_size()));
  Memory packed(desc, cpu(), made->room.get());
  dnnl::stream stream(cpu());
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  made->memory = packed;
  made->depth = packed_depth(weight);
  return OPMUX_OK;
}

}  // namespace

void copy_rows(const uint16_t* from, int64_t rows, int64_t size, int64_t padded, uint16_t* to) {
  for (int64_t i = 0; i < rows; ++i, from += size, to += padded) {
    std::fill(std::copy_n(from, size, to), to + padded, uint16_t{0});
  }
}

std::shared_ptr<Prepared> with_weight(
    const plugin::Call& call,
    const std::function<std::shared_ptr<Prepared>(const Memory::desc& weight)>& make) {
  const Memory::desc plain = plain_desc(call.tensor(kWeight));
  const auto* packed = call.instance<PackedWeight>();
  if (!packed) return make(plain);
  try {
    std::shared_ptr<Prepared> made = make(packed->memory.get_desc());
    made->takes_packed = true;
    return made;
  } catch (const plugin::Declined&) {
    return make(plain);
  }
}

void* weight_data(const plugin::Call& call, const Prepared& prepared) {
  return prepared.takes_packed ? call.instance<PackedWeight>()->memory.get_data_handle()
                               : call.tensor(kWeight).data();
}

plugin::Impl& packs_weight(plugin::Impl& impl) {
  return impl
      .stateful([](plugin::Impl::Args) { return std::make_shared<PackedWeight>(); }, load_weight)
      .create_reads({})
      .packed_bytes([](void* instance) {
        return static_cast<PackedWeight*>(instance)->memory.get_desc().get_size();
      });
}

}  // namespace opmux::backends::onednn
