#pragma once

#include <opmux/conformance.hpp>

#include "cli/json.hpp"

namespace opmux::cli {

/// As docs/schemas/verify.json describes them.
Json to_json(const conformance::Finding& finding);
Json to_json(const conformance::ImplementationReport& report);
Json to_json(const conformance::Report& report);

}  // namespace opmux::cli
