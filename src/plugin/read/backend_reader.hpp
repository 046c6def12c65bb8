#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "registry/batch.hpp"

namespace opmux::plugin {

/// The plugin that a backend comes from. `owner` keeps the plugin's code loaded.
struct Origin {
  std::string plugin, build_id;
  std::shared_ptr<void> owner;
};

/// Converts one backend and its implementations from the C structs. If any part is malformed,
/// returns nullopt and appends every refusal to `refused`.
std::optional<registry::Batch> read_backend(const opmux_backend& from, const Origin& origin,
                                            std::vector<registry::Refusal>& refused);

/// Converts one answer to a specialization point. An answer of the wrong type counts as no answer.
/// Sets `backend` to the name of the answering backend.
Result<registry::PointAnswerDraft> read_point(const opmux_point& from, const Origin& origin,
                                              std::string& backend);

}  // namespace opmux::plugin
