#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/export.hpp>

namespace opmux {

enum class Level : uint8_t { debug, info, warning, error };

/// "debug", "info", "warning", "error".
OPMUX_API std::string_view name_of(Level level) noexcept;

/// Something worth telling a person. Each distinct (code, op, impl, reason) is told once and
/// counted after that.
struct Event {
  Level level = Level::info;
  std::string code;  ///< stable: "dispatch.chosen", "dispatch.refused", "call.fell_back"
  std::string op, impl;
  std::string text;  ///< one sentence
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// Receives events, from any thread, never under a lock of opmux. Must not throw.
using EventSink = std::function<void(const Event&)>;

}  // namespace opmux
