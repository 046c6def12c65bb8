#include "conformance/draft.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "verify/bounds.hpp"

namespace opmux::conformance {
namespace {

/// Sets strides for dimensions that are in memory in this order, outermost first, with gaps.
void lay_out(Random& random, const std::vector<size_t>& order, int64_t inner_step, int gaps,
             CaseTensor& tensor) {
  int64_t step = inner_step;
  for (size_t i = order.size(); i > 0; --i) {
    const size_t dim = order[i - 1];
    tensor.strides[dim] = step;
    step *= std::max<int64_t>(tensor.shape[dim], 1);
    if (random.chance(gaps)) step += random.pick<int64_t>({1, 2, 3, 7, 8, 16});
  }
}

void shuffle(Random& random, std::vector<size_t>& order, size_t count) {
  for (size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
}

/// Makes one leading dimension a broadcast (stride 0).
void broadcast(Random& random, CaseTensor& tensor) {
  const int64_t leading = static_cast<int64_t>(tensor.shape.size()) - 1;
  if (leading > 0) tensor.strides[static_cast<size_t>(random.below(leading))] = 0;
}

/// Sets random strides for dimensions of size 1, because implementations must ignore those.
void disturb_ones(Random& random, CaseTensor& tensor) {
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 1 && random.chance(25)) tensor.strides[i] = random.between(1, 99);
  }
}

void draw_place(Random& random, CaseTensor& tensor) {
  tensor.at_end = random.chance(55);
  tensor.skip = random.chance(60) ? 0 : random.pick<int64_t>({1, 2, 3, 4, 8, 16});
}

}  // namespace

Layouts draw_layouts(Random& random) {
  if (random.chance(45)) return Layouts::contiguous;
  return random.chance(75) ? Layouts::inner_contiguous : Layouts::any;
}

void set_contiguous(CaseTensor& tensor) {
  tensor.strides.assign(tensor.shape.size(), 1);
  for (size_t i = tensor.shape.size(); i > 1; --i) {
    tensor.strides[i - 2] = tensor.strides[i - 1] * std::max<int64_t>(tensor.shape[i - 1], 1);
  }
}

void draw_layout(Random& random, Layouts layouts, bool written, CaseTensor& tensor) {
  set_contiguous(tensor);
  draw_place(random, tensor);
  if (layouts == Layouts::contiguous || tensor.shape.empty()) return;
  std::vector<size_t> order(tensor.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool inner = layouts == Layouts::inner_contiguous || random.chance(50);
  if (random.chance(35)) shuffle(random, order, inner ? order.size() - 1 : order.size());
  const int64_t inner_step = inner || random.chance(50) ? 1 : random.between(2, 3);
  lay_out(random, order, inner_step, random.pick({0, 50, 100}), tensor);
  if (!written && random.chance(4)) broadcast(random, tensor);
  disturb_ones(random, tensor);
}

namespace {

using Draw = std::function<double(Random&)>;

/// Magnitudes between the smallest number of the dtype and 2^10 times that.
Draw tiny(DType dtype) {
  return [low = verify::smallest(dtype)](Random& r) {
    return r.normal() * low * std::exp2(r.between(0, 10));
  };
}

Draw draw_profile(Random& random, DType dtype) {
  const int64_t which = random.below(100);
  if (which < 50) return [](Random& r) { return r.normal(); };
  if (which < 58) {
    const double scale = random.pick({0.01, 0.1, 8.0, 30.0});
    return [scale](Random& r) { return r.normal() * scale; };
  }
  if (which < 66) return [](Random& r) { return r.normal() * std::exp2(r.between(-8, 6)); };
  if (which < 72) return [](Random& r) { return r.chance(80) ? 0 : r.normal(); };
  if (which < 78) return [](Random& r) { return double(r.between(-4, 4)); };
  if (which < 82) return [value = random.normal()](Random&) { return value; };
  if (which < 87) {
    const double mean = random.pick({-20.0, 5.0, 100.0});
    return [mean](Random& r) { return mean + r.normal(); };
  }
  if (which < 90) return [](Random&) { return 0.0; };
  if (which < 94) return [](Random& r) { return r.normal() * 4000; };
  return tiny(dtype);
}

void add_specials(Random& random, Specials specials, std::vector<double>& values) {
  const auto size = static_cast<int64_t>(values.size());
  for (int64_t left = random.between(1, 3); left > 0 && size > 0; --left) {
    const bool infinite = specials == Specials::nan_and_infinity && random.chance(70);
    double value = std::numeric_limits<double>::quiet_NaN();
    if (infinite) value = std::numeric_limits<double>::infinity() * (random.chance(70) ? -1 : 1);
    values[static_cast<size_t>(random.below(size))] = value;
  }
}

}  // namespace

void draw_values(Random& random, Specials specials, CaseTensor& tensor) {
  tensor.values.resize(static_cast<size_t>(tensor.elements()));
  const Draw draw = draw_profile(random, tensor.dtype);
  for (double& value : tensor.values) value = draw(random);
  if (specials != Specials::none && random.chance(6)) {
    add_specials(random, specials, tensor.values);
  }
}

namespace {

/// Most cases are small, so that many can run; a few are large.
int64_t draw_budget(Random& random) {
  const int64_t which = random.below(100);
  return which < 75 ? 2048 : which < 96 ? 16384 : 131072;
}

DType draw_float(Random& random) { return random.pick({f32, f16, bf16}); }

bool is_number(const std::string& text) { return text[0] >= '0' && text[0] <= '9'; }

}  // namespace

Draft::Draft(std::string op, const std::vector<ArgumentInfo>& infos, uint64_t seed, uint64_t number)
    : random_(seed, op, number), budget_(draw_budget(random_)), layouts_(draw_layouts(random_)) {
  case_.op = std::move(op);
  case_.seed = seed;
  case_.number = number;
  for (const ArgumentInfo& info : infos) case_.arguments.emplace_back().info = &info;
  for (int64_t rank = random_.pick({0, 1, 1, 1, 2, 2, 2, 3, 4}); rank > 0; --rank) {
    case_.leading.push_back(random_.chance(1) ? 0 : size(rank > 2 ? 3 : budget_ / 64));
  }
  draw_arguments();
  draw_dtypes();
}

int64_t Draft::size(int64_t most) {
  most = std::max<int64_t>(most, 1);
  const int64_t which = random_.below(100);
  if (which < 12) return 1;
  if (which < 60) {
    int64_t power = 1;
    for (int64_t steps = random_.between(1, 13); steps > 0 && 2 * power <= most; --steps)
      power *= 2;
    return std::clamp<int64_t>(power + random_.pick({-1, 0, 0, 1, 3, -3}), 1, most);
  }
  return random_.between(1, which < 75 ? std::min<int64_t>(most, 20) : most);
}

int64_t& Draft::dim(const std::string& name) {
  const auto fixed = fixed_.find(name);
  if (fixed != fixed_.end()) return dims_[name] = fixed->second;
  const auto known = dims_.find(name);
  if (known != dims_.end()) return known->second;
  return dims_[name] = size_or_none(std::min<int64_t>(budget_ / 4, 4200));
}

void Draft::shape(const std::string& argument, std::vector<int64_t> shape) {
  case_.argument(argument).tensor.shape = std::move(shape);
}

void Draft::set(const std::string& argument, double value) {
  case_.argument(argument).present = true;
  case_.argument(argument).f64 = value;
}

void Draft::set_integer(const std::string& argument, int64_t value) {
  case_.argument(argument).present = true;
  case_.argument(argument).i64 = value;
}

void Draft::draw_arguments() {
  for (CaseArgument& argument : case_.arguments) {
    argument.present = !argument.info->optional || random_.chance(60);
    if (!argument.is_tensor()) draw_scalar(argument);
  }
}

/// Draws bools and enums. Numbers keep their default unless the shaper sets them.
void Draft::draw_scalar(CaseArgument& argument) {
  const ArgTag type = argument.info->type;
  if (type == ArgTag::logical) {
    argument.i64 = random_.below(2);
  } else if (type == ArgTag::enumeration) {
    argument.i64 = random_.below(static_cast<int64_t>(argument.info->words.size()));
  } else if (argument.info->optional) {
    argument.present = false;
  }
}

/// Draws one dtype for all tensors, or a second one for tensors without leading dimensions (often
/// weights), or independent dtypes.
void Draft::draw_dtypes() {
  const DType first = draw_float(random_), second = draw_float(random_);
  const int64_t which = random_.below(100);
  std::map<std::string, DType> variables;
  for (CaseArgument& argument : case_.arguments) {
    const ArgumentInfo& info = *argument.info;
    const bool leading = !info.dims.empty() && info.dims[0] == "...";
    DType& dtype = argument.tensor.dtype;
    dtype = which < 75 || (which < 88 && leading) ? first
            : which < 88                          ? second
                                                  : draw_float(random_);
    if (info.dtype_variable.empty()) continue;
    dtype = variables.emplace(info.dtype_variable, dtype).first->second;
  }
}

std::vector<int64_t> Draft::shape_of(const ArgumentInfo& info) {
  std::vector<int64_t> shape;
  for (const std::string& name : info.dims) {
    if (name == "...") {
      shape = case_.leading;
    } else {
      shape.push_back(is_number(name) ? std::stoll(name) : dim(name));
    }
  }
  return shape;
}

/// Shrinks the leading dimensions until the largest tensor that has them is within the budget.
void Draft::fit_leading() {
  int64_t widest = 1;
  for (const CaseArgument& argument : case_.arguments) {
    const std::vector<std::string>& dims = argument.info->dims;
    if (dims.empty() || dims[0] != "...") continue;
    int64_t row = 1;
    for (size_t i = 1; i < dims.size(); ++i) row *= is_number(dims[i]) ? 1 : dim(dims[i]);
    widest = std::max(widest, row);
  }
  for (int64_t& size : case_.leading) {
    while (size > 1 && case_.rows() * widest > budget_) size = size / 2;
  }
}

void Draft::make_shapes() {
  for (CaseArgument& argument : case_.arguments) {
    if (!argument.is_tensor() || !argument.present) continue;
    if (!argument.info->any_shape) argument.tensor.shape = shape_of(*argument.info);
    set_contiguous(argument.tensor);
  }
}

namespace {

/// Draws normally distributed values. Those of a large tensor repeat, at a distance that divides no
/// usual size, because drawing them would take longer than timing a call.
void draw_typical(Random& random, CaseTensor& tensor) {
  constexpr size_t kDrawn = 1'048'573;
  std::vector<double>& values = tensor.values;
  values.resize(static_cast<size_t>(tensor.elements()));
  const size_t drawn = std::min(values.size(), kDrawn);
  for (size_t i = 0; i < drawn; ++i) values[i] = random.normal();
  for (size_t i = drawn; i < values.size(); ++i) values[i] = values[i - kDrawn];
}

}  // namespace

void Draft::make_tensors() {
  if (!typical_) fit_leading();
  for (CaseArgument& argument : case_.arguments) {
    if (!argument.is_tensor() || !argument.present) continue;
    CaseTensor& tensor = argument.tensor;
    if (!argument.info->any_shape) tensor.shape = shape_of(*argument.info);
    draw_layout(random_, layouts_, argument.written(), tensor);
    if (!argument.read()) continue;
    if (verify::is_float(tensor.dtype) && typical_) {
      draw_typical(random_, tensor);
    } else if (verify::is_float(tensor.dtype)) {
      draw_values(random_, specials_, tensor);
    } else {
      tensor.values.assign(static_cast<size_t>(tensor.elements()), 0);
    }
  }
}

namespace {

/// Gives all elements that share memory the value of the first of them.
void repeat_broadcast(CaseTensor& tensor) {
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (tensor.strides[dim] != 0 || tensor.shape[dim] < 2) continue;
    int64_t inner = 1;
    for (size_t i = dim + 1; i < tensor.shape.size(); ++i) inner *= tensor.shape[i];
    const int64_t block = inner * tensor.shape[dim];
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const int64_t source = i / block * block + i % inner;
      tensor.values[static_cast<size_t>(i)] = tensor.values[static_cast<size_t>(source)];
    }
  }
}

}  // namespace

Case Draft::finish() {
  for (CaseArgument& argument : case_.arguments) {
    if (!argument.read()) continue;
    repeat_broadcast(argument.tensor);
    argument.tensor.pack();
  }
  // A call without output elements does not examine its data.
  if (case_.empty()) case_.invalid = false;
  return std::move(case_);
}

}  // namespace opmux::conformance
