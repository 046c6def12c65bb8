#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "config/text_node.hpp"

namespace opmux::config {

/// What a scalar is by the core schema of YAML 1.2, which is JSON's for what JSON can say. Quotes
/// make a text.
enum class ScalarType : uint8_t { text, integer, real, boolean };
ScalarType type_of(const TextNode& scalar);

/// "a list", "a map", "nothing", "the number 5", "the text 'on'": how a message calls a node.
std::string shown(const TextNode& node);

/// Nothing if the node is no such scalar, or out of range.
std::optional<bool> bool_of(const TextNode& node);
std::optional<int64_t> int_of(const TextNode& node);
std::optional<double> real_of(const TextNode& node);  ///< whole numbers too
std::optional<std::string_view> text_of(const TextNode& node);

/// "500ms", "30s", "5m", "1h" in milliseconds.
std::optional<int64_t> milliseconds_of(std::string_view text);
/// The same, and "500us", in microseconds.
std::optional<int64_t> microseconds_of(std::string_view text);

}  // namespace opmux::config
