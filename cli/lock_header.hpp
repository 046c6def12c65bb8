#pragma once

#include <string>
#include <string_view>

#include <opmux/lockfile.hpp>

namespace opmux::cli {

/// A C++ header with the choices of a lockfile as constants in a namespace, and with the checks
/// that a program makes when it starts and when it binds plans.
std::string header_of(const Lockfile& lock, std::string_view name_space);

}  // namespace opmux::cli
