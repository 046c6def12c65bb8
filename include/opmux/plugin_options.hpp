#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/export.hpp>

namespace opmux {

/// What a plugin's file must prove before any of its code runs, besides lying where only root and
/// this user can write.
enum class Trust : uint8_t {
  any,          ///< nothing else
  digest,       ///< its SHA-256 is one of PluginOptions::digests
  signed_only,  ///< a key of PluginOptions::keyring signed it
};

/// The word for it: "any", "digest", "signed".
OPMUX_API std::string_view name_of(Trust trust) noexcept;

/// Where plugins are looked for and what they must prove. Neither a policy file nor the environment
/// sets any of it; OPMUX_PLUGIN_PATH only adds folders.
struct PluginOptions {
  /// Absolute folders, besides the installation's backends and OPMUX_PLUGIN_PATH.
  std::vector<std::string> folders = {};
  Trust trust = Trust::any;
  /// An absolute folder with public keys, `*.pub` as `opmux plugin keygen` writes them.
  std::string keyring = {};
  /// SHA-256 of the files that Trust::digest accepts, 64 hexadecimal digits each.
  std::vector<std::string> digests = {};
  /// Load a copy in sealed memory, which nobody can change any more, instead of the file. Always so
  /// with Trust::signed_only. A plugin that looks for libraries beside itself ($ORIGIN) is refused.
  bool sealed = false;
  /// Try a plugin of `folders` or OPMUX_PLUGIN_PATH in a process of its own first, and load it when
  /// a decision could use it. False: it is loaded at once. The installation's own backends are not
  /// tried.
  bool probe = true;
  /// A larger file is not read.
  uint64_t max_bytes = uint64_t{1} << 30;
};

}  // namespace opmux
