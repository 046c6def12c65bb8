#include <algorithm>
#include <limits>

#include <opmux/tensor.hpp>

namespace opmux {
namespace {

/// A product that wraps, because signed overflow is undefined. Every call refuses a view whose size
/// does not fit, so the wrong value is never used.
int64_t wrapping_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

void fill_row_major(const int64_t* shape, int rank, int64_t* strides) {
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = step;
    step = wrapping_product(step, std::max<int64_t>(shape[i], 1));
  }
}

}  // namespace

TensorView::TensorView(void* data, DType dtype, std::span<const int64_t> shape,
                       std::span<const int64_t> strides, Device device) noexcept {
  tensor_.data = data;
  tensor_.device = {device.type, device.id};
  tensor_.dtype = {dtype.code, dtype.bits, dtype.lanes};
  const bool representable =
      shape.size() <= OPMUX_MAX_RANK && (strides.empty() || strides.size() == shape.size());
  if (!representable) {
    tensor_.ndim = 1;
    shape_[0] = kUnrepresentable;
    return;
  }
  tensor_.ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), shape_);
  if (strides.empty()) {
    fill_row_major(shape_, tensor_.ndim, strides_);
  } else {
    std::copy(strides.begin(), strides.end(), strides_);
  }
}

TensorView::TensorView(const opmux_tensor& tensor) noexcept {
  tensor_ = tensor;
  point_inside();
  const bool representable = tensor.ndim >= 0 && tensor.ndim <= OPMUX_MAX_RANK &&
                             (tensor.ndim == 0 || tensor.shape != nullptr);
  if (!representable) {
    tensor_.ndim = 1;
    shape_[0] = kUnrepresentable;
    return;
  }
  std::copy_n(tensor.shape, tensor.ndim, shape_);
  if (tensor.strides == nullptr) {
    fill_row_major(shape_, tensor_.ndim, strides_);
  } else {
    std::copy_n(tensor.strides, tensor.ndim, strides_);
  }
}

int64_t TensorView::elements() const noexcept {
  if (std::any_of(shape_, shape_ + rank(), [](int64_t size) { return size <= 0; })) return 0;
  int64_t product = 1;
  for (const int64_t size : shape()) {
    if (__builtin_mul_overflow(product, size, &product)) return std::numeric_limits<int64_t>::max();
  }
  return product;
}

bool TensorView::contiguous() const noexcept {
  if (elements() == 0) return true;
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step = wrapping_product(step, shape_[i]);
  }
  return true;
}

}  // namespace opmux
