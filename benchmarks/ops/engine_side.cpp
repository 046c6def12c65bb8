#include "engine_side.hpp"

#include "../bare.hpp"

namespace opmux::bench {
namespace {

const Argument* find(const Point& point, std::string_view name) {
  for (const Argument& argument : point.arguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

opmux_bare::Product product_of(const Point& point, const Buffers& buffers) {
  const bool linear = point.op == "linear";
  const Argument& a = *find(point, linear ? "x" : "a");
  const Argument& b = *find(point, linear ? "weight" : "b");
  return {.y = buffers.data("y"),
          .a = buffers.data(a.name),
          .b = buffers.data(b.name),
          .m = a.shape[0],
          .n = b.shape[linear ? 0 : 1],
          .k = a.shape[1],
          .bf16 = point.dtype == bf16,
          .transposed = linear,
          .packed = b.kind == Argument::Kind::constant};
}

opmux_bare::Call call_of(const Point& point, const Buffers& buffers, std::string_view engine) {
  const bool product = point.op == "matmul" || point.op == "linear";
  if (product && engine == "onednn") return opmux_bare::onednn_product(product_of(point, buffers));
  if (product && engine == "openblas") {
    return opmux_bare::openblas_product(product_of(point, buffers));
  }
  if (point.op == "softmax" && engine == "onednn") {
    return opmux_bare::onednn_softmax(
        {buffers.data("y"), buffers.data("x"), point.tokens, point.hidden, point.dtype == bf16});
  }
  return {};
}

}  // namespace

EngineSide engine_side(const Point& point, const Buffers& buffers,
                       const std::string& implementation) {
  const size_t slash = implementation.find('/') + 1;
  const std::string engine = implementation.substr(slash, implementation.find('.') - slash);
  opmux_bare::Call call = call_of(point, buffers, engine);
  if (!call) return {};
  return {"bare " + engine, std::move(call)};
}

}  // namespace opmux::bench
