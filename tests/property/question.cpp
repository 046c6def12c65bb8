#include "question.hpp"

#include <algorithm>
#include <cctype>

namespace opmux::property {
namespace {

bool convert(const Arg& arg, Value& value) {
  switch (arg.type) {
    case Arg::Type::tensor: return value.tag == ArgTag::tensor;
    case Arg::Type::integer: return value.tag == ArgTag::integer;
    case Arg::Type::boolean: return value.tag == ArgTag::logical;
    case Arg::Type::string: return value.tag == ArgTag::string;
    case Arg::Type::list: return value.tag == ArgTag::integer_list;
    case Arg::Type::floating:
      if (value.tag == ArgTag::integer) value.real = static_cast<double>(value.number);
      return value.tag == ArgTag::integer || value.tag == ArgTag::floating;
    case Arg::Type::enumeration: break;
  }
  if (value.tag == ArgTag::string) {
    value.number = std::find(arg.words.begin(), arg.words.end(), value.text) - arg.words.begin();
  } else if (value.tag != ArgTag::enumeration && value.tag != ArgTag::integer) {
    return false;
  }
  return value.number >= 0 && value.number < static_cast<int64_t>(arg.words.size());
}

bool bind_shape(const Arg& arg, const TensorView& tensor, Seen& seen) {
  long double bytes = static_cast<long double>(tensor.dtype().size_bytes());
  for (const int64_t size : tensor.shape()) {
    if (size < 0) return false;
    bytes *= static_cast<long double>(std::max<int64_t>(size, 1));
  }
  if (bytes > static_cast<long double>(INT64_MAX)) return false;
  if (arg.any_shape) return true;
  const auto shape = tensor.shape();
  if (shape.size() < arg.dims.size() || (shape.size() > arg.dims.size() && !arg.leading))
    return false;
  const size_t before = shape.size() - arg.dims.size();
  if (arg.leading) {
    const std::vector<int64_t> leading(shape.begin(),
                                       shape.begin() + static_cast<ptrdiff_t>(before));
    if (seen.leading && *seen.leading != leading) return false;
    seen.leading = leading;
  }
  for (size_t i = 0; i < arg.dims.size(); ++i) {
    const std::string& name = arg.dims[i];
    const int64_t size = shape[before + i];
    const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    const int64_t wanted = number ? std::stoll(name) : seen.dims.emplace(name, size).first->second;
    if (wanted != size) return false;
  }
  return true;
}

Fact scalar_or_dim(const Schema& schema, const Seen& seen, const std::string& name) {
  if (seen.dims.contains(name)) return seen.dims.at(name);
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (schema.args[i].name == name && !absent(seen.args[i])) return seen.args[i].number;
  }
  return {};
}

bool holds(const Where& where, const Schema& schema, const Seen& seen) {
  const Fact left = scalar_or_dim(schema, seen, where.left);
  const Fact right = where.right.empty() ? Fact(1) : scalar_or_dim(schema, seen, where.right);
  if (!left || !right) return true;
  if (where.compare == "%") return *left % where.factor == 0;
  return where.compare == "==" ? *left == where.factor * *right : *left <= where.factor * *right;
}

Fact tensor_fact(uint32_t kind, const TensorView& tensor) {
  switch (kind) {
    case OPMUX_FACT_DTYPE: return tensor.dtype().packed();
    case OPMUX_FACT_RANK: return tensor.rank();
    case OPMUX_FACT_CONTIGUOUS: return tensor.contiguous() ? 1 : 0;
    case OPMUX_FACT_ALIGNMENT: return alignment_of(tensor);
    case OPMUX_FACT_LAYOUT: return layout_of(tensor);
    default: return tensor.device().type | int64_t{tensor.device().id} << 16;
  }
}

}  // namespace

bool absent(const Value& value) {
  return value.tag == ArgTag::none || (value.tag == ArgTag::tensor && !value.tensor.present());
}

std::optional<Seen> check(const Schema& schema, const Call& call) {
  Seen seen;
  std::map<std::string, DType> variables;
  if (call.given.size() > schema.args.size()) return {};
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const Arg& arg = schema.args[i];
    Value value = i < call.given.size() ? call.given[i] : Value{};
    const bool left_out = i >= call.given.size() || (absent(value) && !arg.optional);
    if (left_out && arg.default_value && absent(value)) value = *arg.default_value;
    seen.args.push_back(value);
    if (absent(value)) {
      if (!arg.optional) return {};
      continue;
    }
    if (!convert(arg, seen.args[i])) return {};
    if (arg.type != Arg::Type::tensor) continue;
    if (!bind_shape(arg, value.tensor, seen)) return {};
    if (arg.dtype_variable.empty()) continue;
    const DType dtype = value.tensor.dtype();
    if (variables.emplace(arg.dtype_variable, dtype).first->second != dtype) return {};
  }
  for (const Where& where : schema.where) {
    if (!holds(where, schema, seen)) return {};
  }
  return seen;
}

const Arg* find(const Schema& schema, const std::string& name) {
  for (const Arg& arg : schema.args) {
    if (arg.name == name) return &arg;
  }
  return nullptr;
}

bool has_dim(const Schema& schema, const std::string& name) {
  return std::any_of(schema.args.begin(), schema.args.end(), [&](const Arg& arg) {
    return (name == "rows" && arg.leading) ||
           std::find(arg.dims.begin(), arg.dims.end(), name) != arg.dims.end();
  });
}

int64_t layout_of(const TensorView& tensor) {
  std::vector<int> order;
  for (int i = 0; i < tensor.rank(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return tensor.stride(a) != tensor.stride(b) ? tensor.stride(a) > tensor.stride(b) : a < b;
  });
  int64_t packed = 0;
  for (size_t i = order.size(); i-- > 0;) packed = packed * 16 + order[i];
  return packed;
}

int64_t packed_layout(const std::string& digits) {
  int64_t packed = 0;
  for (size_t i = digits.size(); i-- > 0;) packed = packed * 16 + (digits[i] - '0');
  return packed;
}

int64_t alignment_of(const TensorView& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  int64_t alignment = 1;
  while (alignment < 4096 && address % static_cast<uintptr_t>(2 * alignment) == 0) alignment *= 2;
  return alignment;
}

const Value* Question::value(const std::string& name) const {
  for (size_t i = 0; i < seen->args.size(); ++i) {
    if (world->schema.args[i].name == name) return &seen->args[i];
  }
  return nullptr;
}

Fact Question::ambient(const std::string& name) const {
  const Ambient& a = call->ambient;
  return name == "grad"            ? a.grad
         : name == "capturing"     ? a.capturing
         : name == "deterministic" ? a.deterministic
                                   : a.training;
}

Fact Question::dim(const std::string& name) const {
  if (name != "rows") return seen->dims.contains(name) ? Fact(seen->dims.at(name)) : Fact();
  if (!seen->leading) return {};
  int64_t rows = 1;
  for (const int64_t size : *seen->leading) rows *= size;
  return rows;
}

Fact Question::fact(uint32_t kind, const std::string& name) const {
  if (kind == OPMUX_FACT_AMBIENT) return ambient(name);
  if (kind == OPMUX_FACT_TAG) return call->tag;
  if (kind == OPMUX_FACT_DIM) return dim(name);
  const Value* v = value(name);
  const bool gone = v == nullptr || absent(*v);
  if (kind == OPMUX_FACT_PRESENT) return gone ? 0 : 1;
  if (gone) return {};
  return kind == OPMUX_FACT_SCALAR ? Fact(v->number) : tensor_fact(kind, v->tensor);
}

}  // namespace opmux::property
