#pragma once

#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "config/policy_files.hpp"
#include "registry/snapshot.hpp"

namespace opmux::runtime {

/// Parses one or several files into one policy with all their rules. Only one of them may set a
/// given setting other than rules ("policy.said_twice").
Result<Policy> parse_files(const std::vector<config::FileText>& files,
                           const registry::RegistrySnapshot& registry);

/// SHA-256 of the text; for several files, of the output of sha256sum for them.
std::string digest_of(const std::vector<config::FileText>& files);

}  // namespace opmux::runtime
