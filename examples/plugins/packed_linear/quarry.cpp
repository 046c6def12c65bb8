/// linear/quarry.panels: an implementation with state. The weight is packed once per constant:
/// create makes an empty instance, load packs the weight, plan decides how rows are split into
/// pieces, run multiplies, describe reports the instance's contents, and the host destroys the
/// instance together with the constant.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <opmux/plugin.hpp>

#include "panels.hpp"

namespace op = opmux::plugin;

namespace quarry {
namespace {

// Argument positions in the signature.
constexpr uint32_t kY = 0, kX = 1, kWeight = 2, kBias = 3;
constexpr const char* kSignature =
    "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], Tensor? bias[N])";

struct Packed {
  std::optional<Panels> panels;

  void pack(const op::TensorArg& weight) {
    panels.emplace(weight.data<const float>(), weight.dim(0), weight.dim(1), weight.stride(0));
  }
};

/// Prepared state of calls with this number of rows.
struct Pieces {
  int64_t rows, rows_per_piece;
  int64_t count() const { return (rows + rows_per_piece - 1) / rows_per_piece; }
};

std::shared_ptr<void> create(op::Impl::Args) { return std::make_shared<Packed>(); }

/// `params` contains the constant argument kWeight only. The host counts the packed copy and
/// decides when to drop it.
int32_t load(void* instance, op::Impl::Args params) {
  static_cast<Packed*>(instance)->pack(op::TensorArg{params[kWeight].value.tensor});
  return OPMUX_OK;
}

void describe(void* instance, const op::Node& node) {
  const Panels& panels = *static_cast<Packed*>(instance)->panels;
  node.attribute("packed_bytes", std::to_string(panels.bytes()));
  node.attribute("panels", std::to_string(panels.count()));
  node.attribute("outputs", std::to_string(panels.outputs()));
  node.attribute("inputs", std::to_string(panels.inputs()));
}

/// Depends on the number of rows only, as declared in the registration.
std::shared_ptr<void> plan(const op::Call& call) {
  const op::TensorArg x = call.tensor(kX);
  const int64_t rows = x.elements() / std::max<int64_t>(x.dim(-1), 1);
  return std::make_shared<Pieces>(Pieces{rows, 16});
}

/// A weight that is not a Constant has no instance, so it is packed for this call only.
void run(const op::Call& call) {
  Packed once;
  const auto* packed = call.instance<Packed>();
  if (packed == nullptr) {
    once.pack(call.tensor(kWeight));
    packed = &once;
  }
  const op::TensorArg y = call.tensor(kY), x = call.tensor(kX), bias = call.optional_tensor(kBias);
  const Pieces& pieces = *call.prepared<Pieces>();
  const int64_t inputs = x.dim(-1), outputs = y.dim(-1), panels = packed->panels->count();
  call.for_each(pieces.count() * panels, [&](int64_t work) {
    const int64_t first = work / panels * pieces.rows_per_piece;
    packed->panels->multiply(work % panels,
                             {.x = x.data<const float>() + first * inputs,
                              .y = y.data<float>() + first * outputs,
                              .count = std::min(pieces.rows_per_piece, pieces.rows - first),
                              .x_stride = inputs,
                              .y_stride = outputs},
                             bias ? bias.data<const float>() : nullptr);
  });
}

op::Impl linear() {
  return op::Impl{"linear", "panels"}
      .signature(kSignature)
      .caps(op::Caps{}.dtypes({op::f32}).contiguous().at_least("K", 1))
      .flags(OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT)
      .stateful(create, load)
      .describe(describe)
      .plan(plan, {{OPMUX_FACT_DIM, "rows"}})
      .run(run);
}

}  // namespace
}  // namespace quarry

OPMUX_PLUGIN_ENTRY(quarry) {
  return op::answer(host, out, [] {
    return op::Plugin{"quarry", "1.0.0"}.add(
        op::Backend{"quarry", OPMUX_KIND_VENDOR}.vendor("quarry").add(quarry::linear()));
  });
}
