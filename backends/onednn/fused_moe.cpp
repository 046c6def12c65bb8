#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/common/activation.hpp"
#include "backends/common/expert_choices.hpp"
#include "backends/onednn/implementations.hpp"
#include "backends/onednn/parts.hpp"
#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Activation = float (*)(float);
// In the order of the schema's enum.
constexpr Activation kActivations[] = {silu, gelu, gelu_tanh};

// The number of tokens per expert is known only when the call runs, but primitives are created
// before. So there is one primitive per power of two, and rows after the last token are zeros. More
// than kMostRows rows are multiplied in several steps.
constexpr int64_t kMostRows = 256;

// Dimensions of one call.
struct Sizes {
  explicit Sizes(const plugin::Call& call)
      : tokens(Rows(call.tensor(0).c()).count()),
        hidden(call.tensor(2).dim(2)),
        inner(call.tensor(3).dim(2)),
        experts(call.tensor(2).dim(0)),
        choices(tokens * call.tensor(5).dim(-1)) {}
  int64_t tokens, hidden, inner, experts, choices;
};

// Both products of an expert for up to `rows` rows.
struct Products {
  int64_t rows;
  std::unique_ptr<Prepared> up, down;
};

std::unique_ptr<Prepared> product(int64_t rows, int64_t depth, int64_t width,
                                  dnnl::memory::data_type type, dnnl::memory::data_type to) {
  const Desc y({rows, width}, to, {width, 1}), x({rows, depth}, type, {depth, 1});
  const Desc w({depth, width}, type, {1, depth});
  return prepared_product(y, x, w);
}

struct ExpertProducts {
  std::vector<Products> all;
  uint64_t scratchpad = 0;

  const Products& for_rows(int64_t rows) const {
    return *std::ranges::find_if(all, [&](const Products& p) { return p.rows >= rows; });
  }
};

std::shared_ptr<void> plan_moe(const plugin::Call& call) {
  const ThreadLimit limit(call);
  const Sizes sizes(call);
  const auto type = data_type_of(call.tensor(1).dtype());
  auto plan = std::make_shared<ExpertProducts>();
  for (int64_t rows = 1; rows <= kMostRows; rows *= 2) {
    plan->all.push_back(
        {rows, product(rows, sizes.hidden, 2 * sizes.inner, type, type),
         product(rows, sizes.inner, sizes.hidden, type, dnnl::memory::data_type::f32)});
    const Products& made = plan->all.back();
    plan->scratchpad = std::max({plan->scratchpad, made.up->workspace(), made.down->workspace()});
  }
  return plan;
}

// Layout of a call's workspace.
struct Places {
  Places(const plugin::Call& call, const Sizes& sizes, void* workspace) : parts(workspace) {
    const int64_t size = call.tensor(1).dtype().bits / 8;
    begins = parts.take<int64_t>(sizes.experts + 1);
    order = parts.take<int64_t>(sizes.choices);
    sums = parts.take<float>(sizes.tokens * sizes.hidden);
    rows = parts.take<char>(kMostRows * sizes.hidden * size);
    gates = parts.take<char>(kMostRows * 2 * sizes.inner * size);
    gated = parts.take<char>(kMostRows * sizes.inner * size);
    results = parts.take<float>(kMostRows * sizes.hidden);
    scratchpad =
        parts.take<char>(static_cast<int64_t>(call.prepared<ExpertProducts>()->scratchpad));
  }
  Parts parts;
  // Choices sorted by expert, and the index at which each expert's choices begin.
  int64_t *begins, *order;
  float *sums, *results;
  char *rows, *gates, *gated, *scratchpad;
};

void sort_by_expert(const ExpertChoices& choices, int64_t experts, Places& places) {
  std::fill_n(places.begins, experts + 1, 0);
  const auto each = [&](const auto& visit) {
    for (int64_t t = 0; t < choices.tokens(); ++t) {
      for (int64_t i = 0; i < choices.per_token(); ++i) {
        const int64_t expert = choices.expert(t, i);
        if (expert >= 0) visit(expert, t * choices.per_token() + i);
      }
    }
  };
  each([&](int64_t expert, int64_t) { ++places.begins[expert + 1]; });
  for (int64_t e = 0; e < experts; ++e) places.begins[e + 1] += places.begins[e];
  // Filling advances each expert's begin to its end, which is the next expert's begin; the copy
  // shifts the array back into place.
  each([&](int64_t expert, int64_t choice) { places.order[places.begins[expert]++] = choice; });
  std::copy_backward(places.begins, places.begins + experts, places.begins + experts + 1);
  places.begins[0] = 0;
}

// to = activation(gate) * up, rounded to the rows' type.
template <class T>
void gate_row(const T* gates, int64_t width, Activation activation, T* to) {
  for (int64_t i = 0; i < width; ++i) {
    to[i] = from_float<T>(activation(to_float(gates[i])) * to_float(gates[width + i]));
  }
}

template <class T>
class Moe {
 public:
  Moe(const plugin::Call& call, const Sizes& sizes, const ExpertChoices& choices, Places& places)
      : call_(call), sizes_(sizes), choices_(choices), places_(places) {}

  int32_t run() {
    std::fill_n(places_.sums, sizes_.tokens * sizes_.hidden, 0.0F);
    for (int64_t e = 0; e < sizes_.experts; ++e) {
      for (int64_t at = places_.begins[e]; at < places_.begins[e + 1]; at += kMostRows) {
        const int64_t rows = std::min(kMostRows, places_.begins[e + 1] - at);
        const int32_t outcome = apply(e, places_.order + at, rows);
        if (outcome != OPMUX_OK) return outcome;
      }
    }
    store();
    return OPMUX_OK;
  }

 private:
  T* of(char* part) const { return reinterpret_cast<T*>(part); }

  int32_t apply(int64_t expert, const int64_t* chosen, int64_t rows) {
    const Products& products = call_.prepared<ExpertProducts>()->for_rows(rows);
    gather(chosen, rows, products.rows);
    const T* w1 = call_.tensor(2).data<T>() + expert * 2 * sizes_.inner * sizes_.hidden;
    const T* w2 = call_.tensor(3).data<T>() + expert * sizes_.hidden * sizes_.inner;
    const int32_t outcome = products.up->run(
        call_, {places_.gates, places_.rows, const_cast<T*>(w1)}, places_.scratchpad);
    if (outcome != OPMUX_OK) return outcome;
    const Activation activation = kActivations[call_.i64(6)];
    call_.for_each(products.rows, [&](int64_t r) {
      gate_row(of(places_.gates) + r * 2 * sizes_.inner, sizes_.inner, activation,
               of(places_.gated) + r * sizes_.inner);
    });
    const int32_t second = products.down->run(
        call_, {places_.results, places_.gated, const_cast<T*>(w2)}, places_.scratchpad);
    if (second == OPMUX_OK) add_up(chosen, rows);
    return second;
  }

  void gather(const int64_t* chosen, int64_t rows, int64_t all) {
    const size_t bytes = static_cast<size_t>(sizes_.hidden) * sizeof(T);
    const T* x = call_.tensor(1).data<T>();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t token = chosen[r] / choices_.per_token();
      std::memcpy(of(places_.rows) + r * sizes_.hidden, x + token * sizes_.hidden, bytes);
    }
    std::memset(of(places_.rows) + rows * sizes_.hidden, 0,
                static_cast<size_t>(all - rows) * bytes);
  }

  void add_up(const int64_t* chosen, int64_t rows) {
    const plugin::TensorArg weights = call_.tensor(4);
    const Rows places(weights.c());
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t token = chosen[r] / choices_.per_token(), i = chosen[r] % choices_.per_token();
      const float weight = element_at(weights.c(), places.offset(token) + i * weights.stride(-1));
      float* sum = places_.sums + token * sizes_.hidden;
      const float* result = places_.results + r * sizes_.hidden;
      for (int64_t h = 0; h < sizes_.hidden; ++h) sum[h] += weight * result[h];
    }
  }

  void store() {
    T* y = call_.tensor(0).data<T>();
    call_.for_each(sizes_.tokens, [&](int64_t t) {
      const float* sum = places_.sums + t * sizes_.hidden;
      for (int64_t h = 0; h < sizes_.hidden; ++h) y[t * sizes_.hidden + h] = from_float<T>(sum[h]);
    });
  }

  const plugin::Call& call_;
  const Sizes& sizes_;
  const ExpertChoices& choices_;
  Places& places_;
};

int32_t run_moe(const plugin::Call& call) {
  const Sizes sizes(call);
  const plugin::TensorArg ids = call.tensor(5);
  const ExpertChoices choices(ids.c());
  const std::string wrong = choices.complaint(sizes.experts);
  if (!wrong.empty()) return plugin::invalid(call.error(), "moe.expert", wrong);
  Places places(call, sizes, call.workspace());
  sort_by_expert(choices, sizes.experts, places);
  int32_t outcome = OPMUX_OK;
  with_element(call.tensor(1).dtype(),
               [&]<class T>(Tag<T>) { outcome = Moe<T>(call, sizes, choices, places).run(); });
  return outcome;
}

int32_t verify_moe(const plugin::Facts& facts, opmux_error* why) {
  const auto type = facts.dtype("x");
  if (facts.dtype("y") == type && facts.dtype("w1") == type && facts.dtype("w2") == type) {
    return OPMUX_OK;
  }
  return plugin::decline(why, "verify.dtype", "y, x, w1 and w2 must have one dtype");
}

}  // namespace

void add_fused_moe(plugin::Backend& backend) {
  plugin::Impl impl{"fused_moe", "grouped"};
  impl.signature(
          "fused_moe(out Tensor y[..., H], Tensor x[..., H], const Tensor w1[E, I2, H], "
          "const Tensor w2[E, H, I], Tensor topk_weights[..., K], Tensor topk_ids[..., K], "
          "enum{silu, gelu, gelu_tanh} activation = silu) where I2 == 2 * I")
      .caps(float_caps()
                .contiguous("y")
                .contiguous("x")
                .contiguous("w1")
                .contiguous("w2")
                .dtypes("topk_weights", {plugin::f32, plugin::f16, plugin::bf16})
                .dtypes("topk_ids", {plugin::i32, plugin::i64})
                .at_least("H", 1)
                .at_least("I", 1))
      .verify(verify_moe, {{OPMUX_FACT_DTYPE, "y"},
                           {OPMUX_FACT_DTYPE, "x"},
                           {OPMUX_FACT_DTYPE, "w1"},
                           {OPMUX_FACT_DTYPE, "w2"}})
      .plan(plan_moe, {{OPMUX_FACT_DTYPE, "x"}, {OPMUX_FACT_DIM, "H"}, {OPMUX_FACT_DIM, "I"}})
      .workspace(
          [](const plugin::Call& call) { return Places(call, Sizes(call), nullptr).parts.used(); })
      .run(run_moe);
  backend.add(impl);
}

}  // namespace opmux::backends::onednn
