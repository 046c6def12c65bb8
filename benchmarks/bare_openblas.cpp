#include "bare.hpp"

#include <cblas.h>

namespace opmux_bare {

Call openblas_product(const Product& p) {
  if (p.bf16) return {};
  openblas_set_num_threads(1);
  return [p] {
    const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n),
               k = static_cast<blasint>(p.k);
    const auto* a = static_cast<const float*>(p.a);
    const auto* b = static_cast<const float*>(p.b);
    auto* y = static_cast<float*>(p.y);
    const blasint stride = p.transposed ? k : n;
    if (m == 1) {
      cblas_sgemv(CblasRowMajor, p.transposed ? CblasNoTrans : CblasTrans, p.transposed ? n : k,
                  stride, 1.0F, b, stride, a, 1, 0.0F, y, 1);
      return;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, p.transposed ? CblasTrans : CblasNoTrans, m, n, k,
                1.0F, a, k, b, stride, 0.0F, y, n);
  };
}

}  // namespace opmux_bare
