#include <algorithm>
#include <cctype>

#include "generator.hpp"

namespace opmux::property {
namespace {

/// Distinct addresses for the tensors; the kernels of this test never access the data.
uintptr_t room(size_t place) { return uintptr_t{place + 1} << 40; }

bool is_number(const std::string& dim) {
  return std::isdigit(static_cast<unsigned char>(dim[0])) != 0;
}

}  // namespace

int64_t Generator::size() {
  if (chance(3)) return 0;
  return one_of({1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 96, 128, 200});
}

DType Generator::dtype() {
  // The low four bits of the codes of the last two equal those of u4 and i6, which were registered
  // before.
  static constexpr DType kUnsigned4{OPMUX_DTYPE_UINT, 4}, kFloat4{17, 4}, kWide{2, 32, 17};
  if (chance(10)) return one_of({kUnsigned4, kFloat4, kWide, i64});
  return one_of({f32, f32, f32, f16, bf16});
}

Value Generator::scalar(const Arg& arg) {
  Value value;
  switch (arg.type) {
    case Arg::Type::integer:
      value.tag = ArgTag::integer;
      value.number = static_cast<int64_t>(below(chance(10) ? 10 : 4));
      break;
    case Arg::Type::boolean:
      value.tag = ArgTag::logical;
      value.number = static_cast<int64_t>(below(2));
      break;
    case Arg::Type::enumeration:
      value.number = static_cast<int64_t>(below(chance(5) ? 4 : 3));
      value.tag = one_of({ArgTag::enumeration, ArgTag::integer, ArgTag::integer, ArgTag::string});
      value.text = one_of({"plain", "soft", "hard"});
      break;
    case Arg::Type::floating:
      value.tag = chance(80) ? ArgTag::floating : ArgTag::integer;
      value.number = static_cast<int64_t>(below(2));
      value.real = one_of({0.5, 0.5, 1.0, -0.0});
      break;
    case Arg::Type::string:
      value.tag = ArgTag::string;
      value.text = one_of({"x", "y"});
      break;
    default: value.tag = ArgTag::integer_list; value.list = {1, static_cast<int64_t>(below(2))};
  }
  return value;
}

TensorView Generator::tensor(const std::vector<int64_t>& shape, DType dtype, size_t place) {
  return moved(TensorView(reinterpret_cast<void*>(room(place)), dtype, shape, {}), place);
}

/// The same elements with another address, padding or permutation.
TensorView Generator::moved(const TensorView& tensor, size_t place) {
  const auto rank = static_cast<size_t>(tensor.rank());
  std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  std::vector<size_t> order;
  for (size_t i = 0; i < rank; ++i) order.push_back(rank - 1 - i);
  if (rank > 1 && chance(15)) std::swap(order[below(rank)], order[below(rank)]);
  std::vector<int64_t> strides(rank);
  int64_t stride = chance(8) ? 2 : 1;
  for (const size_t dim : order) {
    strides[dim] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[dim], 1), &stride)) stride = 1;
    if (chance(8)) stride += 16;
  }
  const uintptr_t offset = chance(60) ? 0 : one_of({1u, 2u, 16u, 32u, 64u, 2048u});
  return {reinterpret_cast<void*>(room(place) + offset), tensor.dtype(), shape, strides,
          tensor.device()};
}

/// Chooses sizes that satisfy the schema's conditions, as far as one pass can.
void Generator::fit_where(const Schema& schema, std::map<std::string, int64_t>& dims) {
  for (const Where& where : schema.where) {
    if (!dims.contains(where.left)) continue;
    const int64_t right = where.right.empty() ? 1 : dims[where.right];
    int64_t& left = dims[where.left];
    if (where.compare == "%") left *= where.factor;
    if (where.compare == "==") left = where.factor * right;
    if (where.compare == "<=") left = std::min(left, where.factor * right);
  }
}

Call Generator::call(const World& world) {
  const Schema& schema = world.schema;
  std::map<std::string, int64_t> dims;
  for (const std::string& name : dims_of(schema)) dims[name] = size();
  if (chance(97)) fit_where(schema, dims);
  std::vector<int64_t> leading(below(3));
  for (int64_t& size_here : leading) size_here = size();
  const DType tied = dtype();
  const Device device = chance(4) ? Device{2, static_cast<int32_t>(below(2))} : Device{};
  Call call;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const Arg& arg = schema.args[i];
    Value value;
    if (arg.optional && chance(40)) {
      value.tag = arg.type == Arg::Type::tensor && chance(70) ? ArgTag::tensor : ArgTag::none;
    } else if (arg.type != Arg::Type::tensor) {
      value = scalar(arg);
    } else {
      std::vector<int64_t> shape = arg.leading ? leading : std::vector<int64_t>();
      for (const std::string& dim : arg.dims)
        shape.push_back(is_number(dim) ? std::stoll(dim) : dims[dim]);
      if (arg.any_shape) shape.assign(below(4), size());
      value.tag = ArgTag::tensor;
      const DType type = arg.dtype_variable.empty() || chance(1) ? dtype() : tied;
      value.tensor = tensor(shape, type, i);
      value.tensor = TensorView(value.tensor.data(), type, value.tensor.shape(),
                                value.tensor.strides(), device);
    }
    call.given.push_back(value);
  }
  while (chance(30) && call.given.size() > 1) {
    const Arg& last = schema.args[call.given.size() - 1];
    if (!last.optional && !last.default_value) break;
    call.given.pop_back();
  }
  return call;
}

/// Changes the size of a named dimension in every tensor that has it.
void Generator::change_everywhere(const World& world, Call& call) {
  const Words dims = dims_of(world.schema);
  const bool rows = dims.empty() || chance(30);
  const std::string name = rows ? "" : one_of(dims);
  const int64_t now = size();
  for (size_t i = 0; i < call.given.size(); ++i) {
    const Arg& arg = world.schema.args[i];
    const TensorView& old = call.given[i].tensor;
    if (arg.type != Arg::Type::tensor || !old.present() || arg.any_shape) continue;
    std::vector<int64_t> shape(old.shape().begin(), old.shape().end());
    if (shape.size() < arg.dims.size()) continue;
    const size_t before = shape.size() - arg.dims.size();
    if (rows && before > 0) shape[0] = now;
    for (size_t d = 0; d < arg.dims.size(); ++d) {
      if (!rows && arg.dims[d] == name) shape[before + d] = now;
    }
    call.given[i].tensor = TensorView(old.data(), old.dtype(), shape, {}, old.device());
  }
}

void Generator::change_tensor(Value& value, size_t place) {
  const TensorView& old = value.tensor;
  std::vector<int64_t> shape(old.shape().begin(), old.shape().end());
  switch (below(5)) {
    case 0:
      if (!shape.empty()) shape[below(shape.size())] = chance(5) ? int64_t{1} << 61 : size();
      value.tensor = TensorView(old.data(), old.dtype(), shape, {}, old.device());
      break;
    case 1: value.tensor = TensorView(old.data(), dtype(), shape, {}, old.device()); break;
    case 2:
      if (chance(50) || shape.empty())
        shape.insert(shape.begin(), size());
      else
        shape.erase(shape.begin());
      if (shape.size() > OPMUX_MAX_RANK) shape.pop_back();
      value.tensor = TensorView(old.data(), old.dtype(), shape, {}, old.device());
      break;
    default: value.tensor = moved(old, place);
  }
}

void Generator::change(const World& world, Call& call) {
  if (chance(40)) return change_everywhere(world, call);
  const size_t at = below(call.given.size());
  Value& value = call.given[at];
  const Arg& arg = world.schema.args[at];
  if (arg.type != Arg::Type::tensor) {
    value = scalar(arg);
  } else if (value.tag == ArgTag::tensor && value.tensor.present()) {
    change_tensor(value, at);
  }
}

}  // namespace opmux::property
