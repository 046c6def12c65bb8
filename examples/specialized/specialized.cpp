// Shared code that a backend specializes, in the two forms that FlagTree calls spec and spec_func.
// A backend without 64-bit atomics replaces an addition, and the block sizes of a matmul are hints
// of the backend.
#include <opmux/opmux.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>
#include <vector>

using opmux::CallFrame, opmux::Device, opmux::In, opmux::InOut, opmux::Outcome, opmux::Status,
    opmux::TensorView;

namespace {

// ---- atomic_add_int64: the implementation of a function --------------------------------------

/// The default of shared code, unless a backend replaces it: one addition per element.
template <class T>
void add_each(InOut p, In v) {
  auto* const sums = static_cast<T*>(p->data());
  const auto* const added = static_cast<const T*>(v->data());
  for (int64_t i = 0; i < p->elements(); ++i) sums[i] += added[i];
}

Status own_atomic_add(InOut p, In v) {
  if (p->dtype() == opmux::i64) add_each<int64_t>(p, v);
  if (p->dtype() == opmux::i32) add_each<int32_t>(p, v);
  return {};
}

/// The backend "pair32" has 32-bit atomics only: it adds the halves and carries.
Outcome add_halves(CallFrame& call) {
  uint32_t* const sums = reinterpret_cast<uint32_t*>(call.data<int64_t>(0));
  const uint32_t* const added = reinterpret_cast<const uint32_t*>(call.data<int64_t>(1));
  for (int64_t i = 0; i < 2 * call.tensor(0).elements(); i += 2) {
    const uint32_t low = sums[i] + added[i];
    sums[i + 1] += added[i + 1] + (low < sums[i] ? 1 : 0);
    sums[i] = low;
  }
  return Outcome::ok;
}

void show_atomic_add(opmux::Runtime& runtime) {
  const opmux::Dispatchable<Status(InOut, In)> atomic_add{
      runtime, "atomic_add(inout Tensor p[N], Tensor v[N])", &own_atomic_add};
  // FlagTree builds the default before it asks; here the body runs only if no backend takes the
  // call, so that the addition never happens twice.
  const opmux::Registration pair32 = runtime
                                         .implement({.id = "atomic_add/pair32.int64",
                                                     .kind = opmux::Kind::vendor,
                                                     .vendor = "pair32",
                                                     .caps = opmux::Caps{}.dtypes({opmux::i64}),
                                                     .run = add_halves})
                                         .value();
  const opmux::Operator by_name = runtime.op("atomic_add").value();
  int64_t wide[2] = {0xFFFFFFFF, -1}, wide_added[2] = {1, 1};
  int32_t narrow[2] = {40, 1}, narrow_added[2] = {2, 2};
  opmux::CallReport report;
  Status status = by_name.with(report)(TensorView(wide, opmux::i64, {2}),
                                       TensorView(wide_added, opmux::i64, {2}));
  std::cout << report.implementation << " " << wide[0] << " " << wide[1] << "\n";
  status = by_name.with(report)(TensorView(narrow, opmux::i32, {2}),
                                TensorView(narrow_added, opmux::i32, {2}));
  std::cout << report.implementation << " " << narrow[0] << " " << narrow[1] << "\n";
  if (!status.ok()) std::cout << status.to_string() << "\n";
}

// ---- matmul with hints: the definition of a function ------------------------------------------

constexpr opmux::Point<int64_t(Device, int64_t)> kBlockM{"matmul.block_m"};
constexpr opmux::Point<bool(Device)> kTranspose{"matmul.transpose_b"};

struct Hints {
  int64_t block_m;
  bool transpose_b;
};

/// Asked once, where FlagTree asks when the class is defined. The defaults run only without answer.
Hints hints_for(opmux::Runtime& runtime, Device device, int64_t rows) {
  return {kBlockM.ask(runtime, device, rows).value_or_else([] { return 16; }),
          kTranspose.ask(runtime, device).value_or_else([] { return true; })};
}

void matmul(const Hints& hints, int64_t m, int64_t n, int64_t k, const float* a, const float* b,
            float* c) {
  std::vector<float> transposed;
  if (hints.transpose_b) {
    transposed.resize(static_cast<size_t>(n * k));
    for (int64_t i = 0; i < n * k; ++i) transposed[(i % n) * k + i / n] = b[i];
  }
  for (int64_t from = 0; from < m; from += hints.block_m) {
    for (int64_t row = from; row < std::min(from + hints.block_m, m); ++row) {
      for (int64_t column = 0; column < n; ++column) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          sum +=
              a[row * k + i] * (hints.transpose_b ? transposed[column * k + i] : b[i * n + column]);
        }
        c[row * n + column] = sum;
      }
    }
  }
}

void show_matmul(opmux::Runtime& runtime) {
  const Device cpu{};
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  float c[4];
  const auto compute = [&] {
    const Hints hints = hints_for(runtime, cpu, 2);
    matmul(hints, 2, 2, 3, a, b, c);
    std::cout << "blocks of " << hints.block_m
              << (hints.transpose_b ? ", b transposed" : ", b as it is") << ": " << c[0] << " "
              << c[1] << " " << c[2] << " " << c[3] << "\n";
  };
  compute();
  const opmux::Registration blocks =
      kBlockM
          .answer(runtime, "reference",
                  [](Device, int64_t rows) -> std::optional<int64_t> {
                    if (rows > 64) return std::nullopt;
                    return rows;
                  })
          .value();
  // `false` is an answer; FlagTree's "or" would take the default.
  const opmux::Registration as_it_is =
      kTranspose.answer(runtime, "reference", [](Device) { return std::optional(false); }).value();
  compute();
  for (const opmux::PointInfo& point : opmux::list_points(runtime)) std::cout << point.to_string();
}

}  // namespace

int main() {
  opmux::Runtime runtime = opmux::Runtime::create({.backends = false}).value();
  show_atomic_add(runtime);
  show_matmul(runtime);
}
