#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include <opmux/options.hpp>
#include <opmux/status.hpp>

namespace opmux::base {

/// Where the trust file is. Neither the environment nor a policy can change it; tests pass another
/// place to the functions and classes that take one.
struct TrustFile {
  std::string path = "/etc/opmux/trust.conf";
  uid_t owner = 0;  ///< the user that the file must belong to
};

/// The rules for every process of this machine. A program can be stricter, but not less strict.
struct TrustRules {
  PolicyTrust policy_trust = PolicyTrust::warn;
  /// See PluginOptions::require_confinement; plugins are then probed even if the program says no.
  bool require_confinement = false;
  std::string file = {};  ///< path of the file; empty if it does not exist
  Status problem = {};    ///< why the file cannot be used; the strictest rules apply then
};

/// Reads the rules. Without a file there are none. The strictest rules apply if there is a file
/// that cannot be read, contains a mistake, is not a regular file, belongs to another user, or can
/// be written or replaced by another user.
TrustRules read_trust_file(const TrustFile& file = {});

/// Reads lines of the form `key = value`. Each key occurs at most once; `#` starts a comment.
///
///     policy_trust = refuse          # or warn
///     require_confinement = yes      # or no
///
/// Fails with "trust.file" and the number of the line. Safe for untrusted bytes.
Result<TrustRules> parse_trust_rules(std::string_view text);

}  // namespace opmux::base
