#include "health/breaker_key.hpp"

#include <bit>

namespace opmux::health {
namespace {

using schema::Fact;
using schema::FactKind;

uint8_t rounded_log2(int64_t size) {
  if (size == schema::kAbsent) return BreakerKey::kAbsentDim;
  return size <= 1 ? 0 : static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(size) - 1));
}

const TensorView* first_tensor(const schema::Arguments& arguments) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] == ArgTag::tensor && arguments.values[i].tensor->present())
      return arguments.values[i].tensor;
  }
  return nullptr;
}

template <class Visit>
void for_each_dim(const schema::Schema& schema, Visit&& visit) {
  for (size_t dim = 0; dim < schema.dims.size(); ++dim) visit(static_cast<uint8_t>(dim));
  if (schema.has_leading()) visit(schema::kRowsDim);
}

}  // namespace

BreakerKey BreakerKey::of(const schema::Signature& signature) {
  BreakerKey key;
  if (const TensorView* tensor = first_tensor(*signature.arguments)) {
    const Device device = tensor->device();
    key.device = static_cast<uint64_t>(static_cast<uint32_t>(device.type)) << 32 |
                 static_cast<uint32_t>(device.id);
    key.dtype = tensor->dtype().packed();
  }
  for_each_dim(*signature.schema,
               [&](uint8_t dim) { key.log2[dim] = rounded_log2(dim_value(*signature.dims, dim)); });
  return key;
}

std::string describe(const BreakerKey& key, const schema::Schema& schema) {
  std::string text = key.dtype == 0 ? "no tensor" : name_of(DType::from_packed(key.dtype));
  for_each_dim(schema, [&](uint8_t dim) {
    const uint8_t power = key.log2[dim];
    if (power == BreakerKey::kAbsentDim) return;
    text += " " + schema::describe(schema, {FactKind::dim, dim}) +
            "<=" + std::to_string(power < 63 ? int64_t{1} << power : INT64_MAX);
  });
  if (key.dtype == 0) return text;
  return text + " on " +
         name_of(Device{static_cast<int32_t>(key.device >> 32), static_cast<int32_t>(key.device)});
}

void add_questions(const BreakerKey& key, const schema::Schema& schema,
                   schema::Dependencies& dependencies) {
  for_each_dim(schema, [&](uint8_t dim) {
    const Fact fact{FactKind::dim, dim};
    const uint8_t power = key.log2[dim];
    if (power == BreakerKey::kAbsentDim) {
      dependencies.add({fact, schema::Relation::at_least, 0});
      return;
    }
    if (power < 63) dependencies.add({fact, schema::Relation::at_most, int64_t{1} << power});
    if (power > 0) dependencies.add({fact, schema::Relation::at_most, int64_t{1} << (power - 1)});
  });
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (!schema.args[i].is_tensor()) continue;
    const auto index = static_cast<uint8_t>(i);
    for (const FactKind kind : {FactKind::dtype, FactKind::device, FactKind::present})
      dependencies.add(Fact{kind, index});
    if (!schema.args[i].optional) break;
  }
}

}  // namespace opmux::health
