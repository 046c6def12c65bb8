#pragma once

#include <nlohmann/json.hpp>

namespace opmux::cli {

using Json = nlohmann::ordered_json;

}  // namespace opmux::cli
