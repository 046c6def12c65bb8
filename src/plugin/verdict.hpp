#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::plugin {

/// What a plugin brings, known without its code being in this process.
struct Manifest {
  struct Implementation {
    std::string op, variant;
    bool operator==(const Implementation&) const = default;
  };
  struct Backend {
    std::string name, vendor;
    int32_t kind = 0, device_type = 0;
    uint32_t flags = 0;
    std::vector<Implementation> implementations;
    bool operator==(const Backend&) const = default;
  };

  std::string name, version, vendor, build_id;
  uint32_t flags = 0;                  ///< OPMUX_PLUGIN_*
  std::vector<std::string> operators;  ///< schema texts
  std::vector<std::string> points;     ///< signatures of what it answers
  std::vector<Backend> backends;
  bool operator==(const Manifest&) const = default;
};

/// What became of a plugin in a process of its own.
struct Verdict {
  std::string code;  ///< empty if nothing is wrong; else "probe.crash", "plugin.abi_major" ...
  std::string text;
  std::string stage;     ///< where: "open", "query", "init", "self_test", "shutdown"
  int32_t signal = 0;    ///< that ended it, 0 if none
  uint64_t address = 0;  ///< that the signal was about
  Manifest manifest;     ///< empty unless nothing is wrong

  bool ok() const { return code.empty(); }
  bool operator==(const Verdict&) const = default;
};

inline constexpr size_t kLongestVerdict = 1 << 20;  ///< as text, in bytes

/// One line per fact, fields by tabs, ended by a line "end".
std::string to_text(const Verdict& verdict);
/// Reads what to_text wrote and nothing else; whatever follows its end is an error. Fails with
/// "probe.verdict". For bytes from strangers.
Result<Verdict> parse_verdict(std::string_view text);

}  // namespace opmux::plugin
