#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/detail/function.hpp>
#include <opmux/export.hpp>

namespace opmux {

/// Severity of an event, lowest first.
enum class Level : uint8_t { debug, info, warning, error };

/// "debug", "info", "warning", "error"; static lifetime.
OPMUX_API std::string_view name_of(Level level) noexcept;

/// Something a person may want to know: an implementation was used for the first time, a call fell
/// back, a policy was refused. An event with the same code, operator, implementation and reason is
/// delivered once and then only counted; changes of policy are delivered each time. docs/reasons.md
/// lists the codes.
struct Event {
  Level level = Level::info;
  std::string code;      ///< Stable: "dispatch.chosen", "dispatch.refused", "call.fell_back".
  std::string op, impl;  ///< Operator and implementation concerned; either may be empty.
  std::string text;      ///< One sentence for people; may change between versions.
  std::vector<std::pair<std::string, std::string>> fields = {};  ///< Further values by name.
};

/// Receives events: Options::sink.
///
///   opmux::Options options;
///   options.sink = [](const opmux::Event& event) {
///     std::cerr << opmux::name_of(event.level) << " " << event.code << ": " << event.text << "\n";
///   };
///   opmux::Runtime logged = opmux::Runtime::create(options).value();
///
/// Called from the thread on which the event happened, from several threads at a time, and never
/// while opmux holds a lock, so the sink may call into the runtime. It must not throw. It must stay
/// callable until the runtime is destroyed.
using EventSink = detail::Function<void(const Event&)>;

}  // namespace opmux
