#pragma once

#include <nlohmann/json.hpp>

#include <opmux/conformance.hpp>

namespace opmux::cli {

using Json = nlohmann::ordered_json;

/// As docs/schemas/verify.json describes them.
Json to_json(const conformance::Finding& finding);
Json to_json(const conformance::ImplementationReport& report);
Json to_json(const conformance::Report& report);

}  // namespace opmux::cli
