#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/export.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// What runs for one class of calls of one operator.
struct LockedChoice {
  std::string op;
  std::string when;  ///< what is known of the calls: "dtype(x) == bf16 && H % 16 == 0", "always"
  std::string implementation;
  std::string build_id;     ///< of the file it came from; empty if it has none
  std::string schema_hash;  ///< of the operator: 16 hexadecimal digits
  friend auto operator<=>(const LockedChoice&, const LockedChoice&) = default;
};

/// Choices that were made once and are to be made again: `opmux lock`, Runtime::freeze. As a text
/// it has one line for each choice, sorted, and ends with the SHA-256 of what stands before.
struct OPMUX_API Lockfile {
  std::string policy_hash = {};  ///< of the policies that they were made under
  std::vector<LockedChoice> choices = {};

  std::string to_string() const;
  /// SHA-256 of the sorted text; empty if the library was built without.
  std::string digest() const;

  /// Fails with "lock.text", file and line for what is no lockfile, or was changed by hand.
  static Result<Lockfile> parse(std::string_view text, std::string_view name = "opmux.lock");
  static Result<Lockfile> read(const std::string& path);
  /// Replaces the file as a whole.
  Status write(const std::string& path) const;
};

/// What differs between two things that decide, for one class of calls.
struct ChoiceChange {
  std::string op, when;
  std::string from, to;  ///< implementations; empty: nothing would run, or it is not known
  std::string because;   ///< one clause: "rule \"try-acme\" (new.yaml:12)"
  friend bool operator==(const ChoiceChange&, const ChoiceChange&) = default;
};

/// The choices that two lockfiles make differently, or only one of them makes.
OPMUX_API std::vector<ChoiceChange> differences(const Lockfile& from, const Lockfile& to);

}  // namespace opmux
