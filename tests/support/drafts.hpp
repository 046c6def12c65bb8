#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"

/// Helpers that create registry input.
namespace opmux::test {

inline constexpr const char* kNorm =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6)";

inline registry::ImplementationDraft draft(std::string op, std::string variant) {
  registry::ImplementationDraft draft;
  draft.op = std::move(op);
  draft.variant = std::move(variant);
  draft.kernel.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; };
  return draft;
}

/// A batch of a backend of kind vendor whose vendor has the backend's name.
inline registry::Batch batch_of(const std::string& backend,
                                std::vector<registry::ImplementationDraft> drafts) {
  registry::Batch batch;
  batch.backend.name = batch.backend.vendor = backend;
  batch.implementations = std::move(drafts);
  return batch;
}

inline std::vector<std::string> ids_of(const std::vector<registry::ImplementationPtr>& all) {
  std::vector<std::string> ids;
  for (const auto& implementation : all) ids.push_back(implementation->id);
  return ids;
}

inline std::vector<std::string> reasons_of(const registry::BatchResult& result) {
  std::vector<std::string> reasons;
  for (const auto& refusal : result.refused) reasons.emplace_back(refusal.why.reason());
  return reasons;
}

}  // namespace opmux::test
