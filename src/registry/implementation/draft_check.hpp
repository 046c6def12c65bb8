#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "registry/record.hpp"

namespace opmux::registry {

/// Checks the name, vendor, priority and flags of a backend.
Status check_backend(const BackendDraft& draft);

/// The id of an implementation of a backend, "operator/provider.variant".
std::string id_of(const ImplementationDraft& draft, std::string_view backend);

/// Checks a draft against its operator and makes a record. The caller assigns the record's number.
/// `cpu`: the features of the processor that it may use.
Result<std::shared_ptr<ImplementationRecord>> make_record(const ImplementationDraft& draft,
                                                          const schema::Schema& schema,
                                                          std::shared_ptr<Backend> backend,
                                                          const base::CpuFeatures& cpu);

}  // namespace opmux::registry
