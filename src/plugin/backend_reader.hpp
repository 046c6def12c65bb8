#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "registry/batch.hpp"

namespace opmux::plugin {

/// Who brings a backend.
struct Origin {
  std::string plugin, build_id;
  std::shared_ptr<void> owner;
};

/// One backend with its implementations from its C form. If any part of it is malformed, nothing is
/// returned and every refusal is listed.
std::optional<registry::Batch> read_backend(const opmux_backend& from, const Origin& origin,
                                            std::vector<registry::Refusal>& refused);

/// One answer to a specialization point; a wrong type of answer counts as no answer. The name of
/// its backend goes to `backend`.
Result<registry::PointAnswerDraft> read_point(const opmux_point& from, const Origin& origin,
                                              std::string& backend);

}  // namespace opmux::plugin
