// Building blocks of wrong kernels: a copy of a call that may be modified before the reference runs
// it, and outputs that may be corrupted afterwards. A bug is one small function over it.
#pragma once

#include <opmux/abi.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/common/element.hpp"
#include "backends/common/rows.hpp"

namespace opmux::seeded {

class Faulty {
 public:
  Faulty(const opmux_impl& right, const opmux_call& call);
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;

  // Access to the current arguments.
  bool has(size_t i) const { return args_[i].tag != OPMUX_ARG_NONE; }
  void drop(size_t i) { args_[i].tag = OPMUX_ARG_NONE; }
  opmux_tensor& tensor(size_t i) { return tensors_[i]; }
  int64_t dim(size_t i, int d) const;  ///< d < 0 counts from the end
  int64_t& shape(size_t i, int d);
  int64_t& stride(size_t i, int d);
  int rank(size_t i) const { return tensors_[i].ndim; }
  bool is(size_t i, uint8_t code, uint8_t bits) const {
    return has(i) && tensors_[i].dtype.code == code && tensors_[i].dtype.bits == bits;
  }
  bool bf16(size_t i) const { return is(i, OPMUX_DTYPE_BFLOAT, 16); }
  bool f16(size_t i) const { return is(i, OPMUX_DTYPE_FLOAT, 16); }
  bool f32(size_t i) const { return is(i, OPMUX_DTYPE_FLOAT, 32); }
  bool same_dtype(size_t a, size_t b) const;
  double& f64(size_t i) { return args_[i].value.f64; }
  int64_t& i64(size_t i) { return args_[i].value.i64; }
  void set(size_t i, double value);
  /// Number of elements, and of rows over the last `inner` dimensions.
  int64_t elements(size_t i) const;
  int64_t rows(size_t i, int inner = 1) const { return backends::Rows(tensors_[i], inner).count(); }
  /// Moves the tensor's first element by a number of elements.
  void shift(size_t i, int64_t elements);
  bool contiguous(size_t i) const;
  void make_contiguous(size_t i);
  uintptr_t address(size_t i) const;
  const opmux_call& call() const { return call_; }

  // Element access by row-major index or by offset from the first element.
  int64_t offset(size_t i, int64_t element) const {
    return backends::Rows(tensors_[i], 0).offset(element);
  }
  float get(size_t i, int64_t element) const;
  void put(size_t i, int64_t element, float value);
  int64_t get_int(size_t i, int64_t element) const;
  void put_int(size_t i, int64_t element, int64_t value);
  std::vector<float> row(size_t i, int64_t row) const;
  void put_row(size_t i, int64_t row, const std::vector<float>& values);

  // Ways to run.
  /// Runs the reference on the current arguments.
  int32_t right();
  /// Like right(), but elements of tensor i for which `skip(row, place)` holds keep their old
  /// values.
  int32_t leaving(size_t i, const std::function<bool(int64_t row, int64_t place)>& skip);
  /// Like right(), then rounds output i with `store`, which gets each f32 value before rounding.
  int32_t storing(size_t i, float (*store)(float value));
  /// Like right(), with changed values in an integer tensor: change(value, element).
  int32_t with_integers(size_t i, const std::function<int64_t(int64_t, int64_t)>& change);
  /// Like right(), with changed bytes in a tensor of 8-bit elements: change(byte, element).
  int32_t with_bytes(size_t i, const std::function<int(int, int64_t)>& change);
  /// Like right(), with the given bool mask.
  int32_t with_mask(size_t i, std::vector<uint8_t>& mask, int64_t rows, int64_t columns);
  /// Like right(), with changed values in a float tensor.
  int32_t with_floats(size_t i, const std::function<float(float, int64_t)>& change);
  /// Replaces the arithmetic of operators that map rows of `in` to rows of `out`.
  int32_t by_rows(size_t out, size_t in,
                  const std::function<std::vector<float>(const std::vector<float>&)>& map);

 private:
  /// Runs with tensor i replaced by row-major memory of the given dtype.
  int32_t replaced(size_t i, void* data, opmux_dtype dtype);

  const opmux_impl* right_;
  opmux_call call_;
  std::vector<opmux_arg> args_;
  std::vector<opmux_tensor> tensors_;
  std::vector<std::array<int64_t, OPMUX_MAX_RANK>> shapes_, strides_;
};

/// One wrong kernel.
struct Bug {
  std::string_view op, name;
  int32_t (*run)(Faulty& f);
};

/// Wrong kernels by operator family.
std::vector<Bug> rms_norm_bugs();
std::vector<Bug> norm_bugs();
std::vector<Bug> activation_bugs();
std::vector<Bug> softmax_bugs();
std::vector<Bug> rotary_bugs();
std::vector<Bug> product_bugs();
std::vector<Bug> attention_bugs();
std::vector<Bug> cache_bugs();
std::vector<Bug> routing_bugs();
std::vector<Bug> small_float_bugs();

/// Not a bug: the two linear operators with small floats, added in f32 in another order.
int32_t small_floats_in_f32(Faulty& f);

/// Not bugs: correct kernels that add in another order than the reference.
std::vector<Bug> right_kernels();

// Roundings other than to nearest even.
float truncated_bf16(float value);
float through_f16(float value);  ///< before the final rounding
float through_bf16(float value);

// Bugs that many operators can have; O is the output, I an input.

/// The last M-1 or fewer elements of rows with width % M == R are not written.
template <size_t O, int64_t M, int64_t R>
int32_t tail_unwritten(Faulty& f) {
  const int64_t width = f.dim(O, -1);
  if (width % M != R) return f.right();
  return f.leaving(O, [=](int64_t, int64_t i) { return i >= width - R; });
}

/// The last of many rows is not written.
template <size_t O, int64_t Least, int64_t M, int64_t R>
int32_t last_row_unwritten(Faulty& f) {
  const int64_t rows = f.rows(O);
  if (rows < Least || rows % M != R) return f.right();
  return f.leaving(O, [=](int64_t row, int64_t) { return row == rows - 1; });
}

/// Ignores the stride between rows.
template <size_t I>
int32_t row_stride_ignored(Faulty& f) {
  if (f.has(I) && f.rank(I) == 2 && f.stride(I, -1) == 1) f.stride(I, 0) = f.dim(I, 1);
  return f.right();
}

/// Ignores the stride between neighbours.
template <size_t I>
int32_t inner_stride_ignored(Faulty& f) {
  if (f.has(I) && f.rank(I) > 0) f.stride(I, -1) = 1;
  return f.right();
}

/// Uses the stride of the last leading dimension for all leading dimensions.
template <size_t I>
int32_t leading_collapsed(Faulty& f) {
  for (int d = f.rank(I) - 3; d >= 0; --d) {
    f.stride(I, d) = f.stride(I, d + 1) * f.dim(I, d + 1);
  }
  return f.right();
}

/// Writes one element past the end if the length is one short of a vector.
template <size_t O, int64_t M>
int32_t written_past(Faulty& f) {
  const int32_t outcome = f.right();
  const int64_t width = f.dim(O, -1), rows = f.rows(O);
  if (outcome != OPMUX_OK || width % M != M - 1 || f.stride(O, -1) != 1) return outcome;
  backends::with_element(f.tensor(O).dtype, [&]<class T>(backends::Tag<T>) {
    const int64_t last = backends::Rows(f.tensor(O)).offset(rows - 1);
    backends::first_element<T>(f.tensor(O))[last + width] = T{};
  });
  return outcome;
}

/// Reads one element past the end if width % M == R.
template <size_t I, int64_t M, int64_t R>
int32_t read_past(Faulty& f) {
  const int64_t width = f.dim(I, -1), rows = f.rows(I);
  if (width % M == R && f.stride(I, -1) == 1 && rows > 0) {
    backends::with_element(f.tensor(I).dtype, [&]<class T>(backends::Tag<T>) {
      const T* row = backends::first_element<const T>(f.tensor(I));
      const T past = row[backends::Rows(f.tensor(I)).offset(rows - 1) + width];
      [[maybe_unused]] volatile float sink = backends::to_float(past);
    });
  }
  return f.right();
}

/// Scales an input in place and does not restore it.
template <size_t I, int64_t Rows>
int32_t input_changed(Faulty& f) {
  const int32_t outcome = f.right();
  if (outcome == OPMUX_OK && f.rows(I) == Rows && f.elements(I) > 0) {
    f.put(I, 0, f.get(I, 0) == 0 ? 1 : f.get(I, 0) * 2);
  }
  return outcome;
}

/// Adds the result to the previous contents of the output.
template <size_t O, int64_t Width>
int32_t output_added_to(Faulty& f) {
  if (f.dim(O, -1) != Width || !f.has(O)) return f.right();
  std::vector<float> before(static_cast<size_t>(f.elements(O)));
  for (size_t i = 0; i < before.size(); ++i) before[i] = f.get(O, static_cast<int64_t>(i));
  const int32_t outcome = f.right();
  for (size_t i = 0; i < before.size(); ++i) {
    f.put(O, static_cast<int64_t>(i), f.get(O, static_cast<int64_t>(i)) + before[i]);
  }
  return outcome;
}

/// Truncates bf16 results instead of rounding.
template <size_t O>
int32_t bf16_truncated(Faulty& f) {
  return f.bf16(O) ? f.storing(O, truncated_bf16) : f.right();
}

/// Passes f32 results of mixed calls through f16.
template <size_t O, size_t I>
int32_t f32_through_f16(Faulty& f) {
  return f.f32(O) && !f.f32(I) ? f.storing(O, through_f16) : f.right();
}

/// Reads a tensor that is not 16-byte aligned from the preceding boundary.
template <size_t I>
int32_t aligned_down(Faulty& f) {
  const auto size = static_cast<uintptr_t>(f.tensor(I).dtype.bits / 8);
  if (f.has(I) && f.elements(I) > 24) {
    f.shift(I, -static_cast<int64_t>(f.address(I) % 16 / size));
  }
  return f.right();
}

/// With several threads, counts rows in a shared variable.
template <size_t O, int64_t Least>
int32_t threads_share_a_counter(Faulty& f) {
  const int32_t outcome = f.right();
  const opmux_call& call = f.call();
  const int64_t rows = f.rows(O);
  if (outcome != OPMUX_OK || call.max_threads < 2 || rows < Least) return outcome;
  struct Shared {
    Faulty* f;
    std::vector<std::vector<float>> results;
    volatile int64_t next = 0;
  } shared{&f, {}};
  for (int64_t r = 0; r < rows; ++r) shared.results.push_back(f.row(O, r));
  call.parallel_for(call.pool, rows, &shared, [](void* context, int64_t i) {
    auto& s = *static_cast<Shared*>(context);
    const int64_t mine = s.next;
    s.next = mine + 1;
    s.f->put_row(O, mine < s.f->rows(O) ? mine : 0, s.results[static_cast<size_t>(i)]);
  });
  return outcome;
}

/// Changes the last bit in one of Period calls.
template <size_t O, int Period>
int32_t last_bit_wavers(Faulty& f) {
  static thread_local int calls = 0;
  const int32_t outcome = f.right();
  if (outcome == OPMUX_OK && ++calls % Period == 0 && f.f32(O) && f.elements(O) > 0) {
    f.put(O, 0, f.get(O, 0) * (1 + 0x1p-22F));
  }
  return outcome;
}

/// Computes the rows of large batches with different bits.
template <size_t O, int64_t Least>
int32_t batch_changes_bits(Faulty& f) {
  const int32_t outcome = f.right();
  if (outcome == OPMUX_OK && f.f32(O) && f.rows(O) > Least) {
    for (int64_t i = 0; i < f.elements(O); ++i) f.put(O, i, f.get(O, i) * (1 + 0x1p-22F));
  }
  return outcome;
}

}  // namespace opmux::seeded
