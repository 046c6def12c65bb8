#pragma once

#include <memory>
#include <string>

#include <opmux/status.hpp>

#include "registry/record.hpp"

namespace opmux::registry {

/// Whether a backend may be registered as it stands.
Status check_backend(const BackendDraft& draft);

/// "operator/provider.variant".
std::string id_of(const ImplementationDraft& draft, const Backend& backend);

/// Checks a draft against its operator and makes the record, still without a number.
Result<std::shared_ptr<ImplementationRecord>> make_record(const ImplementationDraft& draft,
                                                          const Schema& schema,
                                                          std::shared_ptr<Backend> backend);

}  // namespace opmux::registry
