#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/export.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// The implementation that runs for one class of calls of one operator.
struct LockedChoice {
  std::string op;
  std::string when;  ///< Facts that define the class: "dtype(x) == bf16 && H % 16 == 0", "always".
  std::string implementation;  ///< Id: "rms_norm/simd.avx512".
  std::string build_id;     ///< Of the file that contains the implementation; empty if it has none.
  std::string schema_hash;  ///< Of the operator: 16 hexadecimal digits.
  friend auto operator<=>(const LockedChoice&, const LockedChoice&) = default;
};

/// Choices of a runtime, written down so that another process makes the same ones. Runtime::lock()
/// makes one; Runtime::freeze(lock), or mode static, applies it.
///
///   opmux::Lockfile lock = runtime.lock();
///   if (lock.write("opmux.lock").ok()) {
///     opmux::Lockfile read = opmux::Lockfile::read("opmux.lock").value();
///     std::cout << read.choices.size() << " choices\n";
///     opmux::Status fits = runtime.check_lock(read);
///     if (!fits.ok()) std::cerr << fits.message() << "\n";
///   }
///
/// The text has one line for each choice, sorted, and ends with the SHA-256 of the lines before, so
/// it can be compared and reviewed. A plain value.
struct OPMUX_API Lockfile {
  /// Identifies the meaning of the policies under which choices were made.
  std::string policy_hash = {};
  std::vector<LockedChoice> choices = {};

  /// The text of the file, digest included. Equal choices give equal texts.
  std::string to_string() const;
  /// SHA-256 of the sorted text; empty if the library was built without digests.
  std::string digest() const;

  /// Parses a text; `name` appears in messages. Fails with `invalid_argument`, "lock.text", and the
  /// line if the text is not a lockfile, or was edited after it was written.
  static Result<Lockfile> parse(std::string_view text, std::string_view name = "opmux.lock");
  /// Reads and parses a file. Fails as parse() does, and with "config.file" if it cannot be read.
  static Result<Lockfile> read(const std::string& path);
  /// Replaces the file atomically: readers see the old or the new content. Fails with `failed`,
  /// "lock.write", and the error of the system.
  Status write(const std::string& path) const;
};

/// A difference between two lockfiles or two policies, for one class of calls.
struct ChoiceChange {
  std::string op, when;  ///< Operator, and condition that defines the class.
  std::string from, to;  ///< Implementations; empty: no candidate, or not known.
  std::string because;   ///< Cause: "rule \"try-acme\" (new.yaml:12)".
  friend bool operator==(const ChoiceChange&, const ChoiceChange&) = default;
};

/// Choices that two lockfiles make differently, including different builds and schemas, and choices
/// that only one of them has. Sorted by operator and class; empty if they are equivalent.
OPMUX_API std::vector<ChoiceChange> differences(const Lockfile& from, const Lockfile& to);

}  // namespace opmux
