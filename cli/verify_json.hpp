#pragma once

#include <opmux/conformance.hpp>

#include "cli/json.hpp"

namespace opmux::cli {

/// In the format of docs/schemas/verify.json.
Json to_json(const conformance::Finding& finding);
Json to_json(const conformance::ImplementationReport& report);
Json to_json(const conformance::Report& report);

}  // namespace opmux::cli
