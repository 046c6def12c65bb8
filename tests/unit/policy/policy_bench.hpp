#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "policy/rules/operator_policy.hpp"
#include "policy/rules/policy_set.hpp"

namespace opmux::policy {

inline Policy with_rule(Rule rule) { return {.rules = {std::move(rule)}}; }

struct CandidateSpec {
  std::string id;
  Kind kind;
  std::string vendor;
  int priority;
};

inline std::shared_ptr<const registry::OperatorRecord> make_operator(
    const std::string& schema, const std::vector<CandidateSpec>& candidates) {
  auto op = std::make_shared<registry::OperatorRecord>();
  op->schema = std::make_shared<schema::Schema>(schema::parse_schema(schema).value());
  for (const CandidateSpec& spec : candidates) {
    auto impl = std::make_shared<registry::ImplementationRecord>();
    impl->id = spec.id;
    impl->op = op->schema->name;
    impl->kind = spec.kind;
    impl->vendor = spec.vendor;
    impl->priority = spec.priority;
    impl->backend = std::make_shared<registry::Backend>(registry::BackendDraft{});
    op->implementations.push_back(impl);
  }
  return op;
}

/// Four implementations: two by vendors, a default, a reference.
inline std::shared_ptr<const registry::OperatorRecord> norm_operator() {
  return make_operator(
      "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[W], float eps = 1e-6, "
      "int window = 0, bool causal = false)",
      {{"norm/acme.v1", Kind::vendor, "acme", 100},
       {"norm/onednn.jit", Kind::vendor, "intel", 100},
       {"norm/reference.scalar", Kind::reference, "", 50},
       {"norm/simd.avx2", Kind::default_, "", 150}});
}

/// The signature of a call of norm().
struct NormCall {
  int64_t rows = 32, hidden = 4096, window = 0;
  DType dtype = f32;
  int device_type = OPMUX_DEVICE_CPU, device_id = 0;
  bool weight = false, causal = false;
  uint32_t ambient = 0, tag = 0;
  void* data = reinterpret_cast<void*>(uintptr_t{4096});
  double eps = 1e-6;
};

/// A call of norm() together with the data that its signature points to.
class BoundCall {
 public:
  BoundCall(const NormCall& call, const schema::Schema& schema)
      : signature_{&schema, &arguments_, &dims_, call.ambient, call.tag} {
    const Device device{call.device_type, call.device_id};
    x_ = TensorView(call.data, call.dtype, {call.rows, call.hidden}, device);
    if (call.weight) weight_ = TensorView(call.data, call.dtype, {call.hidden}, device);
    arguments_.count = 6;
    arguments_.tags = {ArgTag::tensor,   ArgTag::tensor,  ArgTag::tensor,
                       ArgTag::floating, ArgTag::integer, ArgTag::logical};
    arguments_.values[0].tensor = &x_;
    arguments_.values[1].tensor = &x_;
    arguments_.values[2].tensor = &weight_;
    arguments_.values[3].f64 = call.eps;
    arguments_.values[4].i64 = call.window;
    arguments_.values[5].i64 = call.causal ? 1 : 0;
    dims_.values.fill(-1);
    dims_.values[0] = call.hidden;
    if (call.weight) dims_.values[1] = call.hidden;
    dims_.leading_rank = 1;
    dims_.rows = call.rows;
  }
  BoundCall(const BoundCall&) = delete;

  const schema::Signature& signature() const { return signature_; }

 private:
  schema::Signature signature_;
  TensorView x_, weight_;
  schema::Arguments arguments_;
  schema::BoundDims dims_;
};

inline PolicyLayerPtr layer_of(Source source, Policy policy) {
  return PolicyLayer::make(source, std::move(policy), std::string(name_of(source))).value();
}

struct Sourced {
  Source source;
  Policy policy;
};

/// Applies policy layers (strongest first) to a call of norm().
class Bench {
 public:
  explicit Bench(const std::vector<Sourced>& sources,
                 std::shared_ptr<const registry::OperatorRecord> op = norm_operator())
      : op_(std::move(op)) {
    PolicyLayerPtr scope;
    for (const Sourced& sourced : sources) {
      PolicyLayerPtr layer = layer_of(sourced.source, sourced.policy);
      if (sourced.source == Source::scope) {
        scope = layer;
      } else {
        set_.layers.push_back(layer);
      }
    }
    policy_ = OperatorPolicy::compile(set_, scope, op_);
    evaluate({});
  }

  const PolicyView& evaluate(const NormCall& call) {
    policy_->evaluate(BoundCall(call, *op_->schema).signature(), view_);
    return view_;
  }

  /// Providers of the remaining candidates, best first.
  std::string ranking() const {
    std::vector<size_t> order(op_->implementations.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](size_t i) { return view_.drops[i].reason != registry::Reason::none; });
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (view_.tiers[a] != view_.tiers[b]) return view_.tiers[a] < view_.tiers[b];
      if (view_.scores[a] != view_.scores[b]) return view_.scores[a] > view_.scores[b];
      return a < b;
    });
    std::string text;
    for (const size_t i : order) text += (text.empty() ? "" : " ") + provider(i);
    return text;
  }

  std::string ranking(const NormCall& call) {
    evaluate(call);
    return ranking();
  }

  const PolicyView& view() const { return view_; }
  const OperatorPolicy& policy() const { return *policy_; }
  std::string dropped(const std::string& name) const {
    return std::string(registry::code_of(drop_of(name).reason));
  }
  std::string dropped_by(const std::string& name) const { return describe(drop_of(name).by); }
  double score(const std::string& name) const { return view_.scores[index_of(name)]; }

 private:
  std::string provider(size_t i) const {
    const std::string& id = op_->implementations[i]->id;
    const size_t slash = id.find('/');
    return id.substr(slash + 1, id.find('.', slash) - slash - 1);
  }
  size_t index_of(const std::string& name) const {
    for (size_t i = 0; i < op_->implementations.size(); ++i) {
      if (provider(i) == name) return i;
    }
    ADD_FAILURE() << "no candidate " << name;
    return 0;
  }
  const PolicyView::Drop& drop_of(const std::string& name) const {
    return view_.drops[index_of(name)];
  }

  std::shared_ptr<const registry::OperatorRecord> op_;
  PolicySet set_;
  std::shared_ptr<const OperatorPolicy> policy_;
  PolicyView view_;
};

inline std::string ranked(const std::vector<Sourced>& sources) { return Bench(sources).ranking(); }

}  // namespace opmux::policy
