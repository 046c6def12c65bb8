#pragma once

#include <string>
#include <string_view>

#include <opmux/policy.hpp>

namespace opmux::cli {

/// Generates a C++ header with the choices of a lockfile as constants in a namespace, and functions
/// with which a program checks them at start and when it binds plans.
std::string header_of(const Lockfile& lock, std::string_view name_space);

}  // namespace opmux::cli
