// A service for tests of `opmux tune run --from-pid`: multiplies matrices with 4 to 8 rows in turn,
// and calls softmax once per turn, until it is killed.
#include <cstdio>
#include <vector>

#include <opmux/opmux.hpp>

int main(int argc, char** argv) {
  // tools/coverage starts every program with an argument and expects it to end.
  if (argc > 1) {
    std::fprintf(stderr, "usage: %s\n", argv[0]);
    return 2;
  }
  opmux::Runtime runtime = opmux::Runtime::create({.threads = 1}).value();
  const opmux::Operator matmul = runtime.op("matmul").value();
  const opmux::Operator softmax = runtime.op("softmax").value();
  constexpr int64_t kSize = 64, kMostRows = 8;
  std::vector<float> left(kMostRows * kSize), right(kSize * kSize), y(kMostRows * kSize);
  const opmux::TensorView b(right.data(), opmux::f32, {kSize, kSize});
  const opmux::TensorView row(left.data(), opmux::f32, {1, kSize}),
      to(y.data(), opmux::f32, {1, kSize});
  std::puts("ready");
  std::fflush(stdout);
  while (true) {
    for (int64_t rows = 4; rows <= kMostRows; ++rows) {
      const opmux::TensorView a(left.data(), opmux::f32, {rows, kSize});
      const opmux::TensorView out(y.data(), opmux::f32, {rows, kSize});
      if (!matmul(out, a, b).ok()) return 1;
    }
    if (!softmax(to, row).ok()) return 1;
  }
}
