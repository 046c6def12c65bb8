#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Direct calls of the engines. This code does not use opmux.
namespace opmux_bare {

/// y[m, n] = a[m, k] x b[k, n]; b is given as [n, k] if `transposed`.
struct Product {
  void* y = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool bf16 = false;
  bool transposed = false;
  bool packed = false;  ///< b may be copied once into the engine's fastest layout
};

/// Softmax over each row of x[rows, columns].
struct Rows {
  void* y = nullptr;
  const void* x = nullptr;
  int64_t rows = 0, columns = 0;
  bool bf16 = false;
};

using Call = std::function<void()>;

/// Return a prepared call that runs on one thread; empty if the engine does not support it.
Call onednn_product(const Product& product);
Call onednn_softmax(const Rows& rows);
Call openblas_product(const Product& product);

}  // namespace opmux_bare
