#include "seeded_bugs/faulty.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace opmux::seeded {

using backends::Tag;

Faulty::Faulty(const opmux_impl& right, const opmux_call& call)
    : right_(&right),
      call_(call),
      args_(call.arg_count),
      tensors_(call.arg_count),
      shapes_(call.arg_count),
      strides_(call.arg_count) {
  for (size_t i = 0; i < args_.size(); ++i) {
    args_[i] = *reinterpret_cast<const opmux_arg*>(reinterpret_cast<const char*>(call.args) +
                                                   i * call.arg_stride);
    if (args_[i].tag != OPMUX_ARG_TENSOR) continue;
    tensors_[i] = *args_[i].value.tensor;
    std::copy_n(tensors_[i].shape, tensors_[i].ndim, shapes_[i].begin());
    std::copy_n(tensors_[i].strides, tensors_[i].ndim, strides_[i].begin());
    tensors_[i].shape = shapes_[i].data();
    tensors_[i].strides = strides_[i].data();
    args_[i].value.tensor = &tensors_[i];
  }
  call_.args = args_.data();
  call_.arg_stride = sizeof(opmux_arg);
}

int64_t Faulty::dim(size_t i, int d) const {
  const int at = d < 0 ? d + tensors_[i].ndim : d;
  return at < 0 ? 1 : tensors_[i].shape[at];
}
int64_t& Faulty::shape(size_t i, int d) {
  return tensors_[i].shape[d < 0 ? d + tensors_[i].ndim : d];
}
int64_t& Faulty::stride(size_t i, int d) {
  return tensors_[i].strides[d < 0 ? d + tensors_[i].ndim : d];
}

bool Faulty::same_dtype(size_t a, size_t b) const {
  return tensors_[a].dtype.code == tensors_[b].dtype.code &&
         tensors_[a].dtype.bits == tensors_[b].dtype.bits;
}

void Faulty::set(size_t i, double value) {
  args_[i].tag = OPMUX_ARG_F64;
  args_[i].value.f64 = value;
}

int64_t Faulty::elements(size_t i) const {
  return has(i) ? backends::Rows(tensors_[i], 0).count() : 0;
}

void Faulty::shift(size_t i, int64_t elements) {
  tensors_[i].data = static_cast<char*>(tensors_[i].data) + elements * tensors_[i].dtype.bits / 8;
}

bool Faulty::contiguous(size_t i) const {
  int64_t step = 1;
  for (int d = tensors_[i].ndim - 1; d >= 0; --d) {
    if (tensors_[i].strides[d] != step) return false;
    step *= tensors_[i].shape[d];
  }
  return true;
}

void Faulty::make_contiguous(size_t i) {
  int64_t step = 1;
  for (int d = tensors_[i].ndim - 1; d >= 0; --d) {
    tensors_[i].strides[d] = step;
    step *= tensors_[i].shape[d];
  }
}

uintptr_t Faulty::address(size_t i) const {
  return reinterpret_cast<uintptr_t>(tensors_[i].data) + tensors_[i].byte_offset;
}

float Faulty::get(size_t i, int64_t element) const {
  float value = 0;
  backends::with_element(tensors_[i].dtype, [&]<class T>(Tag<T>) {
    value = backends::to_float(backends::first_element<const T>(tensors_[i])[offset(i, element)]);
  });
  return value;
}

void Faulty::put(size_t i, int64_t element, float value) {
  backends::with_element(tensors_[i].dtype, [&]<class T>(Tag<T>) {
    backends::first_element<T>(tensors_[i])[offset(i, element)] = backends::from_float<T>(value);
  });
}

int64_t Faulty::get_int(size_t i, int64_t element) const {
  const int64_t at = offset(i, element);
  return tensors_[i].dtype.bits == 32 ? backends::first_element<const int32_t>(tensors_[i])[at]
                                      : backends::first_element<const int64_t>(tensors_[i])[at];
}

void Faulty::put_int(size_t i, int64_t element, int64_t value) {
  const int64_t at = offset(i, element);
  if (tensors_[i].dtype.bits == 32) {
    backends::first_element<int32_t>(tensors_[i])[at] = static_cast<int32_t>(value);
  } else {
    backends::first_element<int64_t>(tensors_[i])[at] = value;
  }
}

std::vector<float> Faulty::row(size_t i, int64_t row) const {
  std::vector<float> values(static_cast<size_t>(dim(i, -1)));
  backends::load_row(tensors_[i], backends::Rows(tensors_[i]).offset(row), dim(i, -1),
                     values.data());
  return values;
}

void Faulty::put_row(size_t i, int64_t row, const std::vector<float>& values) {
  backends::store_row(tensors_[i], backends::Rows(tensors_[i]).offset(row), dim(i, -1),
                      values.data());
}

int32_t Faulty::right() { return right_->run(right_->user_data, &call_); }

int32_t Faulty::leaving(size_t i, const std::function<bool(int64_t, int64_t)>& skip) {
  const auto size = static_cast<size_t>(tensors_[i].dtype.bits / 8);
  const auto at = [&](int64_t element) {
    return static_cast<char*>(tensors_[i].data) + tensors_[i].byte_offset +
           offset(i, element) * static_cast<int64_t>(size);
  };
  const int64_t width = dim(i, -1);
  std::vector<char> before(static_cast<size_t>(elements(i)) * size);
  for (int64_t e = 0; e < elements(i); ++e) std::copy_n(at(e), size, &before[e * size]);
  const int32_t outcome = right();
  for (int64_t e = 0; outcome == OPMUX_OK && e < elements(i); ++e) {
    if (skip(e / width, e % width)) std::copy_n(&before[e * size], size, at(e));
  }
  return outcome;
}

int32_t Faulty::replaced(size_t i, void* data, opmux_dtype dtype) {
  const opmux_tensor before = tensors_[i];
  const auto strides = strides_[i];
  tensors_[i].data = data;
  tensors_[i].byte_offset = 0;
  tensors_[i].dtype = dtype;
  make_contiguous(i);
  const int32_t outcome = right();
  tensors_[i] = before;
  strides_[i] = strides;
  return outcome;
}

int32_t Faulty::with_integers(size_t i, const std::function<int64_t(int64_t, int64_t)>& change) {
  std::vector<int64_t> numbers(static_cast<size_t>(elements(i)));
  for (int64_t e = 0; e < elements(i); ++e) {
    numbers[static_cast<size_t>(e)] = change(get_int(i, e), e);
  }
  return replaced(i, numbers.data(), {OPMUX_DTYPE_INT, 64, 1});
}

int32_t Faulty::with_bytes(size_t i, const std::function<int(int, int64_t)>& change) {
  std::vector<uint8_t> bytes(static_cast<size_t>(elements(i)));
  for (int64_t e = 0; e < elements(i); ++e) {
    const int byte = backends::first_element<const uint8_t>(tensors_[i])[offset(i, e)];
    bytes[static_cast<size_t>(e)] = static_cast<uint8_t>(change(byte, e));
  }
  return replaced(i, bytes.data(), tensors_[i].dtype);
}

int32_t Faulty::with_floats(size_t i, const std::function<float(float, int64_t)>& change) {
  std::vector<float> numbers(static_cast<size_t>(elements(i)));
  for (int64_t e = 0; e < elements(i); ++e) numbers[static_cast<size_t>(e)] = change(get(i, e), e);
  return replaced(i, numbers.data(), {OPMUX_DTYPE_FLOAT, 32, 1});
}

int32_t Faulty::with_mask(size_t i, std::vector<uint8_t>& mask, int64_t rows, int64_t columns) {
  args_[i].tag = OPMUX_ARG_TENSOR;
  args_[i].value.tensor = &tensors_[i];
  shapes_[i] = {rows, columns};
  strides_[i] = {columns, 1};
  tensors_[i] = {mask.data(),       {OPMUX_DEVICE_CPU, 0}, 2, {OPMUX_DTYPE_BOOL, 8, 1},
                 shapes_[i].data(), strides_[i].data(),    0};
  return right();
}

int32_t Faulty::storing(size_t i, float (*store)(float value)) {
  std::vector<float> wide(static_cast<size_t>(elements(i)));
  for (size_t e = 0; e < wide.size(); ++e) wide[e] = get(i, static_cast<int64_t>(e));
  const int32_t outcome = replaced(i, wide.data(), {OPMUX_DTYPE_FLOAT, 32, 1});
  for (size_t e = 0; outcome == OPMUX_OK && e < wide.size(); ++e) {
    put(i, static_cast<int64_t>(e), store(wide[e]));
  }
  return outcome;
}

int32_t Faulty::by_rows(size_t out, size_t in,
                        const std::function<std::vector<float>(const std::vector<float>&)>& map) {
  for (int64_t r = 0; r < rows(out); ++r) put_row(out, r, map(row(in, r)));
  return OPMUX_OK;
}

float truncated_bf16(float value) {
  if (std::isnan(value)) return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000u);
}
float through_f16(float value) {
  return backends::to_float(backends::from_float<backends::F16>(value));
}
float through_bf16(float value) {
  return backends::to_float(backends::from_float<backends::BF16>(value));
}

}  // namespace opmux::seeded
