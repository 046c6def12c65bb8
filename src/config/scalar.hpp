#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "config/text_node.hpp"

namespace opmux::config {

/// Type of a scalar by the core schema of YAML 1.2, which agrees with JSON. Quoted scalars are
/// strings.
enum class ScalarType : uint8_t { text, integer, real, boolean };
ScalarType type_of(const TextNode& scalar);

/// A node as messages name it: "a list", "a map", "nothing", "the number 5", "the string 'on'".
std::string shown(const TextNode& node);

/// The value of a scalar; nullopt if the node is of another type or out of range.
std::optional<bool> bool_of(const TextNode& node);
std::optional<int64_t> int_of(const TextNode& node);
std::optional<double> real_of(const TextNode& node);  ///< accepts integers too
std::optional<std::string_view> text_of(const TextNode& node);

/// Parses "500ms", "30s", "5m", "1h"; the result is in milliseconds.
std::optional<int64_t> milliseconds_of(std::string_view text);
/// Parses the same and "500us"; the result is in microseconds.
std::optional<int64_t> microseconds_of(std::string_view text);

}  // namespace opmux::config
