#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::plugin {

/// Description of a plugin's backends and operators, known without loading its code into this
/// process.
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
    std::string device_name = {};  ///< name of device_type if the vendor defines it
    bool operator==(const Backend&) const = default;
  };

  std::string name, version, vendor, build_id;
  uint32_t flags = 0;                  ///< OPMUX_PLUGIN_*
  std::vector<std::string> operators;  ///< schema texts
  /// Signatures of the specialization points that it answers.
  std::vector<std::string> points;
  std::vector<Backend> backends;
  bool operator==(const Manifest&) const = default;
};

/// The result of probing a plugin in a child process.
struct ProbeResult {
  std::string code;  ///< empty on success; else "probe.crash", "plugin.abi_major" ...
  std::string text;
  /// Stage of the failure: "open", "query", "init", "is_available", "self_test", "shutdown".
  std::string stage;
  int32_t signal = 0;    ///< signal that ended the process; 0 = none
  uint64_t address = 0;  ///< address that the signal reported
  Manifest manifest;     ///< empty unless the probe succeeded
  /// Layers of the confinement that the system did not offer: "landlock", "mount_namespace" ...
  std::vector<std::string> missing = {};

  bool ok() const { return code.empty(); }
  bool operator==(const ProbeResult&) const = default;
};

inline constexpr size_t kLongestVerdict = 1 << 20;  ///< limit for the text form, in bytes

/// One line per fact, fields separated by tabs, terminated by a line "end".
std::string to_text(const ProbeResult& verdict);
/// Parses the output of to_text(). Data after the end line is an error. Fails with "probe.verdict".
/// Safe for untrusted bytes.
Result<ProbeResult> parse_verdict(std::string_view text);

}  // namespace opmux::plugin
