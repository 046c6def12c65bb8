#include "replay/minimize.hpp"

#include <algorithm>

#include "base/crypto.hpp"
#include "replay/placed_call.hpp"
#include "replay/recording.hpp"

namespace opmux::replay {
namespace {

/// Sizes of the named dimensions in the order of the schema, then of the leading dimensions.
using Sizes = std::vector<int64_t>;

/// Holds the smallest failing call found so far and its sizes. `left_` is the number of trials
/// left.
class Minimizer {
 public:
  Minimizer(const schema::Schema& schema, Recording recording, const StillWrong& wrong, size_t most)
      : schema_(schema), now_(std::move(recording)), wrong_(wrong), left_(most) {
    schema::BoundDims dims{};
    if (!check_recorded(schema, now_.arguments, dims).ok()) return;
    sizes_.assign(dims.values.begin(), dims.values.begin() + schema.dims.size());
    const int leading = std::max(dims.leading_rank, 0);
    sizes_.insert(sizes_.end(), dims.leading.begin(), dims.leading.begin() + leading);
  }

  Recording run() {
    for (bool smaller = true; smaller && left_ > 0;) {
      smaller = false;
      // Shrink leading dimensions first, because later trials are faster then.
      for (size_t dim = sizes_.size(); dim > 0; --dim) smaller |= shrink(dim - 1);
    }
    return std::move(now_);
  }

  size_t left() const { return left_; }

 private:
  /// Shrinks one dimension as far as the call still fails. True if it became smaller.
  bool shrink(size_t dim) {
    const int64_t before = sizes_[dim];
    while (sizes_[dim] > 1 && try_size(dim, sizes_[dim] / 2)) {
    }
    for (int64_t step = sizes_[dim] / 4; step > 0; step /= 2) {
      while (sizes_[dim] > step && try_size(dim, sizes_[dim] - step)) {
      }
    }
    while (sizes_[dim] > 1 && try_size(dim, sizes_[dim] - 1)) {
    }
    return sizes_[dim] < before;
  }

  /// Tries one dimension with a new size. If the schema does not accept the size alone, also
  /// shrinks another dimension that a `where` clause relates to it.
  bool try_size(size_t dim, int64_t size) {
    Sizes next = sizes_;
    next[dim] = size;
    if (const auto smaller = fitting(next)) return take(*smaller, next);
    for (size_t other = 0; other < schema_.dims.size(); ++other) {
      if (other == dim || sizes_[other] < 1 || !tied(dim, other)) continue;
      for (const int64_t follows : {in_proportion(dim, other, size), in_step(dim, other, size)}) {
        next[other] = follows;
        const auto smaller = follows > 0 ? fitting(next) : std::nullopt;
        if (smaller) return take(*smaller, next);
      }
      next[other] = sizes_[other];
    }
    return false;
  }

  /// True if a `where` clause mentions both dimensions.
  bool tied(size_t dim, size_t other) const {
    using Op = schema::WhereExpression::Op;
    return std::ranges::any_of(schema_.where, [&](const schema::WhereExpression& where) {
      return where.mentions(Op::dim, static_cast<int>(dim)) &&
             where.mentions(Op::dim, static_cast<int>(other));
    });
  }
  int64_t in_proportion(size_t dim, size_t other, int64_t size) const {
    int64_t scaled = 0;
    if (__builtin_mul_overflow(sizes_[other], size, &scaled)) return 0;
    return scaled % sizes_[dim] == 0 ? scaled / sizes_[dim] : 0;
  }
  int64_t in_step(size_t dim, size_t other, int64_t size) const {
    return sizes_[other] - (sizes_[dim] - size);
  }

  /// Keeps the smaller call if it still fails.
  bool take(const Recording& smaller, const Sizes& sizes) {
    if (left_ == 0) return false;
    --left_;
    if (!wrong_(smaller)) return false;
    now_ = smaller;
    sizes_ = sizes;
    return true;
  }

  /// The call cut to these sizes; nullopt if the schema does not accept it.
  std::optional<Recording> fitting(const Sizes& sizes) const {
    Recording smaller = now_;
    for (size_t i = 0; i < smaller.arguments.size() && i < schema_.args.size(); ++i) {
      cut(schema_.args[i], sizes, smaller.arguments[i]);
    }
    schema::BoundDims dims{};
    if (!check_recorded(schema_, smaller.arguments, dims).ok()) return {};
    return smaller;
  }

  void cut(const schema::ArgSpec& spec, const Sizes& sizes, RecordedArgument& argument) const {
    if (argument.tag != ArgTag::tensor || spec.any_shape) return;
    RecordedTensor& tensor = argument.tensor;
    std::vector<int64_t> shape;
    if (spec.leading) {
      shape.assign(sizes.begin() + static_cast<int64_t>(schema_.dims.size()), sizes.end());
    }
    for (const schema::DimSpec& dim : spec.dims) {
      shape.push_back(dim.name < 0 ? dim.constant : sizes[static_cast<size_t>(dim.name)]);
    }
    if (shape.size() == tensor.shape.size() && shape != tensor.shape) cut_to(shape, tensor);
  }

  /// Cuts a tensor to a smaller shape. A tensor without gaps stays without gaps; other tensors keep
  /// their strides.
  static void cut_to(const std::vector<int64_t>& shape, RecordedTensor& tensor) {
    const std::vector<int64_t> packed = packed_strides(tensor.shape);
    if (!tensor.bytes.empty()) {
      const auto size = static_cast<size_t>(tensor.dtype.size_bytes());
      const std::vector<std::byte> all = std::move(tensor.bytes);
      size_t count = size;
      for (const int64_t length : shape) count *= static_cast<size_t>(length);
      tensor.bytes.resize(count);
      gather(all.data(), shape, packed, size, tensor.bytes.data());
      tensor.sha256 = base::sha256_hex(tensor.bytes);
    }
    if (tensor.strides == packed) tensor.strides = packed_strides(shape);
    tensor.shape = shape;
  }

  const schema::Schema& schema_;
  Recording now_;
  const StillWrong& wrong_;
  size_t left_;
  Sizes sizes_;
};

}  // namespace

Recording minimize(const schema::Schema& schema, Recording recording, const StillWrong& wrong,
                   size_t most, size_t& asked) {
  Minimizer minimizer(schema, std::move(recording), wrong, most);
  Recording smallest = minimizer.run();
  asked = most - minimizer.left();
  return smallest;
}

}  // namespace opmux::replay
