#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Engines called by hand. Nothing here knows opmux.
namespace opmux_bare {

/// y[m, n] = a[m, k] x b[k, n]; b is given as [n, k] if `transposed`.
struct Product {
  void* y = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool bf16 = false;
  bool transposed = false;
  bool packed = false;  ///< b may be copied once into whatever form is fastest
};

/// Rows of softmax.
struct Rows {
  void* y = nullptr;
  const void* x = nullptr;
  int64_t rows = 0, columns = 0;
  bool bf16 = false;
};

using Call = std::function<void()>;

/// A call that is ready to run, on one thread; empty if the engine cannot do it or is not there.
Call onednn_product(const Product& product);
Call onednn_softmax(const Rows& rows);
Call openblas_product(const Product& product);

}  // namespace opmux_bare
