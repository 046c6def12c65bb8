#pragma once

#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "config/policy_files.hpp"
#include "registry/snapshot.hpp"

namespace opmux::runtime {

/// The policy of one or several files: their rules in one list. What holds for a whole file may be
/// said in one of them only ("policy.said_twice").
Result<Policy> parse_files(const std::vector<config::FileText>& files,
                           const registry::RegistrySnapshot& registry);

/// SHA-256 of the text; of several files, of what sha256sum prints for them.
std::string digest_of(const std::vector<config::FileText>& files);

}  // namespace opmux::runtime
