/// An operator without constants whose implementation has instances: meadow.tabulated interpolates
/// tanh between equally spaced points. The table depends on the option `points` alone, so it is
/// made once for each instance of the program; the reference computes the two points of each
/// element.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <opmux/plugin.hpp>

namespace op = opmux::plugin;

namespace meadow {
namespace {

constexpr uint32_t kY = 0, kX = 1, kPoints = 2;
constexpr const char* kSchema =
    "meadow.tabulated(out Tensor y[N], Tensor x[N], int points = 256) "
    "where points >= 2 && points <= 65536";
constexpr double kLimit = 6;  // tanh(x) is taken for x between -6 and 6

double at(int64_t point, int64_t points) {
  const double step = 2 * kLimit / static_cast<double>(points - 1);
  return std::tanh(static_cast<double>(point) * step - kLimit);
}

/// The value between two neighbouring points; `point_at` returns those.
template <class PointAt>
double interpolate(double x, int64_t points, PointAt&& point_at) {
  if (std::isnan(x)) return x;
  const double scale = static_cast<double>(points - 1) / (2 * kLimit);
  const double place = (std::clamp(x, -kLimit, kLimit) + kLimit) * scale;
  const int64_t left = std::min(static_cast<int64_t>(place), points - 2);
  const double part = place - static_cast<double>(left);
  return point_at(left) * (1 - part) + point_at(left + 1) * part;
}

/// The object of one instance. It does not change after create(), so threads may share it.
struct Table {
  explicit Table(int64_t points) {
    for (int64_t i = 0; i < points; ++i) values.push_back(at(i, points));
  }
  std::vector<double> values;
};

/// Prepared for the number of elements: how they are split between threads.
struct Pieces {
  int64_t elements, each;
  int64_t count() const { return (elements + each - 1) / each; }
};

std::shared_ptr<void> create(op::Impl::Args options) {
  return std::make_shared<Table>(options[kPoints].value.i64);
}

void describe(void* instance, const op::Node& node) {
  const Table& table = *static_cast<Table*>(instance);
  node.attribute("packed_bytes", std::to_string(table.values.size() * sizeof(double)));
  node.attribute("points", std::to_string(table.values.size()));
}

std::shared_ptr<void> plan(const op::Call& call) {
  return std::make_shared<Pieces>(Pieces{call.tensor(kX).elements(), 4096});
}

void run_table(const op::Call& call) {
  const std::vector<double>& values = call.instance<Table>()->values;
  const auto points = static_cast<int64_t>(values.size());
  float* const y = call.tensor(kY).data<float>();
  const float* const x = call.tensor(kX).data<const float>();
  const Pieces& pieces = *call.prepared<Pieces>();
  call.for_each(pieces.count(), [&](int64_t piece) {
    const int64_t end = std::min((piece + 1) * pieces.each, pieces.elements);
    for (int64_t i = piece * pieces.each; i < end; ++i) {
      y[i] = static_cast<float>(interpolate(
          x[i], points, [&](int64_t point) { return values[static_cast<size_t>(point)]; }));
    }
  });
}

void run_reference(const op::Call& call) {
  const int64_t points = call.i64(kPoints);
  float* const y = call.tensor(kY).data<float>();
  const float* const x = call.tensor(kX).data<const float>();
  for (int64_t i = 0; i < call.tensor(kX).elements(); ++i) {
    y[i] = static_cast<float>(
        interpolate(x[i], points, [&](int64_t point) { return at(point, points); }));
  }
}

op::Impl implementation(const char* variant) {
  return op::Impl{"meadow.tabulated", variant}
      .signature(kSchema)
      .caps(op::Caps{}.dtypes({op::f32}).contiguous())
      .flags(OPMUX_IMPL_DETERMINISTIC);
}

}  // namespace
}  // namespace meadow

OPMUX_PLUGIN_ENTRY(meadow) {
  using namespace meadow;
  return op::answer(host, out, [] {
    return op::Plugin{"meadow", "1.0.0"}
        .schema(kSchema)
        .add(op::Backend{"meadow_plain", OPMUX_KIND_REFERENCE}.add(
            implementation("computed").run(run_reference)))
        .add(op::Backend{"meadow", OPMUX_KIND_VENDOR}.vendor("meadow").add(
            implementation("table")
                .stateful(create)
                .describe(describe)
                .plan(plan, {{OPMUX_FACT_DIM, "N"}})
                .run(run_table)));
  });
}
