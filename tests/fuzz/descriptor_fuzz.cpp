// The descriptor reader on structs in which any field may be wrong. Declared arrays are really
// present, because a reader cannot know how much memory is valid.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "byte_source.hpp"
#include "plugin/read/bounded_read.hpp"
#include "plugin/read/descriptor_reader.hpp"
#include "registry/registry.hpp"

namespace opmux::fuzz {
namespace {

int32_t run(void*, const opmux_call*) { return OPMUX_OK; }
int32_t answer(void*, const opmux_arg*, uint32_t, opmux_arg*) { return OPMUX_OK; }
void destroy(void*, void*) {}
int32_t create(void*, const opmux_arg*, uint32_t, void**, opmux_error*) { return OPMUX_OK; }

/// Generates descriptors and owns their memory.
class Maker {
 public:
  explicit Maker(ByteSource& bytes) : bytes_(bytes) {}

  opmux_plugin plugin() {
    opmux_plugin made{};
    made.struct_size = size_of<opmux_plugin>();
    made.abi_major = bytes_.rarely() ? bytes_.take<uint16_t>() : uint16_t{OPMUX_ABI_MAJOR};
    made.name = text(), made.version = text(), made.vendor = text(), made.build_id = text();
    list(made.backends, made.backend_count, made.backend_stride, [&] { return backend(); });
    list(made.operators, made.operator_count, made.operator_stride,
         [&] { return opmux_schema_text{size_of<opmux_schema_text>(), odd(), text()}; });
    list(made.points, made.point_count, made.point_stride, [&] {
      return opmux_point{size_of<opmux_point>(),
                         odd(),
                         text(),
                         text(),
                         nullptr,
                         bytes_.rarely() ? nullptr : answer};
    });
    made.flags = odd(), made.reserved = odd();
    return made;
  }

 private:
  template <class T>
  uint32_t size_of() {
    return bytes_.rarely() ? bytes_.take<uint32_t>() : uint32_t{sizeof(T)};
  }
  uint32_t odd() { return bytes_.rarely() ? bytes_.take<uint32_t>() : 0; }

  opmux_str text() {
    static constexpr const char* kWords[] = {"",
                                             "acme",
                                             "zeta",
                                             "acme.norm",
                                             "v1",
                                             "H",
                                             "x",
                                             "y",
                                             "1.2",
                                             "avx2,fma",
                                             "0213",
                                             "acme.norm(out Tensor y[H], Tensor x[H])",
                                             "acme.norm(out Tensor y[H], Tensor x[H], f64 e = 1)",
                                             "rms_norm",
                                             "tile() -> int",
                                             "mode",
                                             "*",
                                             "reference",
                                             "vendor:x/y",
                                             "9.0"};
    switch (bytes_.pick(8)) {
      case 0: return {nullptr, bytes_.take<uint16_t>()};
      case 1: return {"x", plugin::kLongestText + 1 + bytes_.take<uint32_t>()};
      case 2: {
        std::string& own = texts_.emplace_back();
        for (uint32_t i = bytes_.pick(48); i > 0; --i) own += static_cast<char>(bytes_.take());
        return {own.data(), own.size()};
      }
      default: return opmux_str_of(kWords[bytes_.pick(std::size(kWords))]);
    }
  }

  /// Memory for `count` elements, `stride` apart.
  template <class T>
  T* room(uint32_t count, uint32_t stride) {
    // Aligned for pointers and of the exact size, so that the sanitizer detects an access past the
    // end.
    const size_t words = (size_t{count} * stride + 7) / 8;
    return reinterpret_cast<T*>(memory_.emplace_back(new uint64_t[words]()).get());
  }

  template <class T, class Make>
  void list(const T*& data, uint32_t& count, uint32_t& stride, const Make& make) {
    count = bytes_.pick(4);
    stride = sizeof(T) + (bytes_.rarely() ? 8 * bytes_.pick(16) : 0);
    T* at = room<T>(count, stride);
    data = at;
    for (uint32_t i = 0; i < count; ++i) {
      const T made = make();
      std::memcpy(static_cast<void*>(reinterpret_cast<char*>(at) + size_t{i} * stride), &made,
                  sizeof(T));
    }
    if (bytes_.rarely()) data = nullptr;
    if (bytes_.rarely()) count = plugin::kMostItems + 1 + bytes_.take<uint32_t>() / 2;
    if (bytes_.rarely()) stride = bytes_.pick(sizeof(T));
  }

  template <class T>
  const T* values(uint32_t& count) {
    count = bytes_.pick(4);
    T* at = room<T>(count, sizeof(T));
    for (uint32_t i = 0; i < count; ++i) at[i] = bytes_.take<T>();
    if (bytes_.rarely()) count = plugin::kMostItems + 1 + bytes_.take<uint16_t>();
    return bytes_.rarely() ? nullptr : at;
  }

  opmux_caps caps() {
    opmux_caps made{};
    made.struct_size = size_of<opmux_caps>();
    made.flags = odd(), made.device_type = static_cast<int32_t>(odd()), made.reserved = odd();
    made.cpu_features = text(), made.min_arch = text(), made.max_arch = text();
    list(made.dtypes, made.dtype_count, made.dtype_stride, [&] {
      opmux_dtype_rule rule{size_of<opmux_dtype_rule>(), 0, text(), nullptr};
      rule.dtypes = values<opmux_dtype>(rule.count);
      return rule;
    });
    list(made.dims, made.dim_count, made.dim_stride, [&] {
      return opmux_dim_rule{size_of<opmux_dim_rule>(), text(), bytes_.pick(8),
                            bytes_.take<int64_t>()};
    });
    list(made.tensors, made.tensor_count, made.tensor_stride, [&] {
      return opmux_tensor_rule{
          size_of<opmux_tensor_rule>(), bytes_.pick(32),         text(), bytes_.take<int8_t>(),
          bytes_.take<int8_t>(),        bytes_.take<uint16_t>(), odd(),  text()};
    });
    list(made.scalars, made.scalar_count, made.scalar_stride, [&] {
      opmux_scalar_rule rule{size_of<opmux_scalar_rule>(), 0, text(), nullptr};
      rule.values = values<int64_t>(rule.count);
      return rule;
    });
    return made;
  }

  opmux_fact fact() { return {size_of<opmux_fact>(), bytes_.pick(20), text()}; }

  opmux_impl impl() {
    opmux_impl made{};
    made.struct_size = size_of<opmux_impl>();
    made.flags = bytes_.pick(64), made.reserved = odd();
    made.op = text(), made.variant = text(), made.signature = text();
    made.prefix_hash = bytes_.rarely() ? bytes_.take<uint64_t>() : 0;
    made.priority = bytes_.take<int16_t>();
    if (bytes_.pick(2) != 0) made.caps = &caps_.emplace_back(caps());
    list(made.verify_reads, made.verify_reads_count, made.verify_reads_stride,
         [&] { return fact(); });
    list(made.plan_reads, made.plan_reads_count, made.plan_reads_stride, [&] { return fact(); });
    list(made.create_reads, made.create_reads_count, made.create_reads_stride,
         [&] { return fact(); });
    made.run = bytes_.rarely() ? nullptr : run;
    if (bytes_.pick(4) == 0) made.create = create;
    if (bytes_.pick(4) == 0) made.destroy = destroy;
    list(made.hints, made.hint_count, made.hint_stride, [&] {
      return opmux_hint{size_of<opmux_hint>(), bytes_.take<int16_t>(), text(),
                        bytes_.take<int8_t>(), bytes_.take<int8_t>()};
    });
    return made;
  }

  opmux_backend backend() {
    opmux_backend made{};
    made.struct_size = size_of<opmux_backend>();
    made.flags = bytes_.pick(32), made.reserved = odd();
    made.name = text(), made.vendor = text();
    made.kind = static_cast<int32_t>(bytes_.pick(5));
    made.device_type = bytes_.take<int8_t>();
    made.priority = bytes_.take<int16_t>();
    list(made.impls, made.impl_count, made.impl_stride, [&] { return impl(); });
    if (bytes_.rarely()) {
      devices_.push_back({});
      devices_.back().struct_size = size_of<opmux_device_table>();
      made.device = &devices_.back();
    }
    return made;
  }

  ByteSource& bytes_;
  std::deque<std::string> texts_;
  std::deque<opmux_caps> caps_;
  std::deque<opmux_device_table> devices_;
  std::vector<std::unique_ptr<uint64_t[]>> memory_;
};

}  // namespace
}  // namespace opmux::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmux::fuzz::ByteSource bytes(data, size);
  opmux::fuzz::Maker maker(bytes);
  const opmux_plugin plugin = maker.plugin();
  const auto contents = opmux::plugin::read_plugin(plugin, std::make_shared<int>());
  if (!contents) return 0;
  opmux::registry::Registry registry;
  for (const opmux::registry::Batch& batch : contents->batches) (void)registry.add(batch, true);
  return 0;
}
