#include "dispatch/call/transform.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "schema/dtype.hpp"

namespace opmux::dispatch {
namespace {

using schema::FactKind;

constexpr double kCopyCost = 5, kCastCost = 10;
constexpr size_t kCopyAlignment = 64;

bool is_short_float(DType dtype) { return dtype == f16 || dtype == bf16; }

bool has_tensor(const schema::Arguments& arguments, size_t arg) {
  return arguments.tags[arg] == ArgTag::tensor && arguments.values[arg].tensor->present();
}

std::byte* aligned_start(std::byte* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<std::byte*>((address + kCopyAlignment - 1) & ~(kCopyAlignment - 1));
}

void copy_element(std::byte* to, DType to_type, const std::byte* from, DType from_type) {
  if (to_type == from_type) {
    std::memcpy(to, from, static_cast<size_t>(to_type.size_bytes()));
  } else if (to_type == f32) {
    uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    const float value = from_type == f16 ? schema::from_f16(bits) : schema::from_bf16(bits);
    std::memcpy(to, &value, sizeof value);
  } else {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    const uint16_t bits = to_type == f16 ? schema::to_f16(value) : schema::to_bf16(value);
    std::memcpy(to, &bits, sizeof bits);
  }
}

/// Copies every element of `from` to `to`, which has the same shape. If the types differ, converts
/// between f32 and f16 or bf16.
void copy_elements(const TensorView& from, const TensorView& to) {
  const int64_t count = from.elements(), from_size = from.dtype().size_bytes(),
                to_size = to.dtype().size_bytes();
  std::array<int64_t, OPMUX_MAX_RANK> at{};
  const auto* source = static_cast<const std::byte*>(from.data());
  auto* target = static_cast<std::byte*>(to.data());
  for (int64_t i = 0; i < count; ++i) {
    copy_element(target, to.dtype(), source, from.dtype());
    for (int d = from.rank() - 1; d >= 0; --d) {
      const auto place = static_cast<size_t>(d);
      source += from.stride(d) * from_size;
      target += to.stride(d) * to_size;
      if (++at[place] < from.dim(d)) break;
      source -= from.stride(d) * from.dim(d) * from_size;
      target -= to.stride(d) * to.dim(d) * to_size;
      at[place] = 0;
    }
  }
}

std::string names_of(uint32_t bits, std::string_view word, const schema::Schema& schema) {
  std::string text;
  for (; bits != 0; bits &= bits - 1) {
    const auto arg = static_cast<size_t>(std::countr_zero(bits));
    text += (text.empty() ? std::string(word) + "(" : ", ") + schema.args[arg].name;
  }
  return text.empty() ? text : text + ")";
}

}  // namespace

double cost_of(const Transforms& transforms) {
  return kCopyCost * std::popcount(transforms.contiguous & ~transforms.widened) +
         kCastCost * std::popcount(transforms.widened);
}

std::string describe(const Transforms& transforms, const schema::Schema& schema) {
  std::string text = names_of(transforms.contiguous, "contiguous", schema);
  const std::string widened = names_of(transforms.widened, "widen", schema);
  if (!text.empty() && !widened.empty()) text += ", ";
  return text + widened;
}

TransformedArguments::TransformedArguments(const schema::Signature& original)
    : original_(original), changed_(original), arguments_(*original.arguments) {
  changed_.arguments = &arguments_;
}

TransformedArguments::TransformedArguments(const schema::Signature& original,
                                           const Transforms& transforms)
    : TransformedArguments(original) {
  transforms_ = transforms;
  for (size_t arg = 0; arg < arguments_.count; ++arg) {
    if (changed(arg)) change(arg);
  }
}

bool TransformedArguments::changed(size_t arg) const {
  return ((transforms_.contiguous | transforms_.widened) >> arg & 1) != 0;
}

/// True if the argument may be replaced by a copy: a tensor on the CPU that is not inout, because
/// the caller may observe an inout tensor during the call.
bool TransformedArguments::may_change(size_t arg) const {
  return has_tensor(*original_.arguments, arg) &&
         original_.schema->args[arg].access != schema::Access::inout &&
         original_.arguments->values[arg].tensor->device().type == OPMUX_DEVICE_CPU;
}

/// Replaces the argument by the view of a copy that fill() will allocate: row-major and aligned.
void TransformedArguments::change(size_t arg) {
  const TensorView& own = *original_.arguments->values[arg].tensor;
  const DType dtype = (transforms_.widened >> arg & 1) != 0 ? f32 : own.dtype();
  void* const nowhere = reinterpret_cast<void*>(uintptr_t{kCopyAlignment});
  views_[arg] = TensorView(nowhere, dtype, own.shape(), {}, own.device());
  arguments_.values[arg].tensor = &views_[arg];
  arguments_.constants &= ~(uint32_t{1} << arg);
}

/// Widens all f16 and bf16 arguments at once, so that element types that the schema requires to be
/// equal stay equal.
bool TransformedArguments::widen_all() {
  if (transforms_.widened != 0) return false;
  uint32_t bits = 0;
  for (size_t arg = 0; arg < arguments_.count; ++arg) {
    if (arguments_.tags[arg] == ArgTag::tensor_list) return false;
    if (!has_tensor(arguments_, arg)) continue;
    if (!is_short_float(arguments_.values[arg].tensor->dtype())) continue;
    if (!may_change(arg)) return false;
    bits |= uint32_t{1} << arg;
  }
  transforms_.widened = bits;
  for (size_t arg = 0; arg < arguments_.count; ++arg) {
    if ((bits >> arg & 1) != 0) change(arg);
  }
  return bits != 0;
}

bool TransformedArguments::step(const registry::CapabilityCheck& failing, uint8_t allowed) {
  const schema::Fact fact = failing.predicate.fact;
  if (fact.kind == FactKind::dtype) return (allowed & policy::kWiden) != 0 && widen_all();
  const bool about_strides = fact.kind == FactKind::contiguous ||
                             fact.kind == FactKind::inner_contiguous ||
                             fact.kind == FactKind::layout;
  if (!about_strides || (allowed & policy::kContiguous) == 0) return false;
  if (changed(fact.index) || !may_change(fact.index)) return false;
  transforms_.contiguous |= uint32_t{1} << fact.index;
  change(fact.index);
  return true;
}

bool TransformedArguments::fit(const registry::Capability& capability, uint8_t allowed) {
  // Terminates, because every step changes an argument that was not changed before.
  while (const registry::CapabilityCheck* failing = first_failing(capability, changed_)) {
    if (!step(*failing, allowed)) return false;
  }
  return true;
}

bool TransformedArguments::fill() {
  for (size_t arg = 0; arg < arguments_.count; ++arg) {
    if (!changed(arg)) continue;
    const int64_t bytes = views_[arg].elements() * views_[arg].dtype().size_bytes();
    memory_[arg].reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes) + kCopyAlignment]);
    if (memory_[arg] == nullptr) return false;
    views_[arg].set_data(aligned_start(memory_[arg].get()));
    if (!original_.schema->args[arg].read()) continue;
    copy_elements(*original_.arguments->values[arg].tensor, views_[arg]);
  }
  return true;
}

void TransformedArguments::write_back() const {
  for (size_t arg = 0; arg < arguments_.count; ++arg) {
    if (!changed(arg) || !original_.schema->args[arg].written()) continue;
    copy_elements(views_[arg], *original_.arguments->values[arg].tensor);
  }
}

void add_transform_facts(const schema::Schema& schema, schema::Dependencies& into) {
  for (size_t arg = 0; arg < schema.args.size(); ++arg) {
    if (!schema.args[arg].is_tensor()) continue;
    for (const FactKind kind : {FactKind::present, FactKind::dtype, FactKind::device}) {
      into.add(schema::Fact{kind, static_cast<uint8_t>(arg)});
    }
  }
}

}  // namespace opmux::dispatch
