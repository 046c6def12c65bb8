#pragma once

#include <string>
#include <string_view>

#include "cli/migrate/systems.hpp"

namespace opmux::cli::migrate {

/// The operators that do the work of one of vllm-plugin-FL's.
Words operators_of_fl(std::string_view theirs);

/// A list as the comma-separated text that the variables have.
std::string dump_text(const TextNode& node);
/// A part of FL's dump: a key of io_dump, or the end of a VLLM_FL_IO_DUMP_* variable.
void take_dump(std::string_view part, const Setting& setting, Migration& migration);

}  // namespace opmux::cli::migrate
