#pragma once

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>

/// Part of the copy of the tree that tools/surface builds. If the variable SURFACE_MUTANT names a
/// switch, the readers of the switch get its default, as if it had not been set.
namespace surface {

/// The variable as the process `id` was started with, or "".
inline std::string variable_of(int id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/environ");
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with("SURFACE_MUTANT=")) return entry.substr(entry.find('=') + 1);
  }
  return "";
}

inline int parent_of(int id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');  // " S PARENT ..." follows
  return end == text.npos ? 0 : std::atoi(text.c_str() + end + 4);
}

/// Asks the ancestors too, because many tests run a program with another environment.
inline std::string find_variable() {
  for (int id = ::getpid(); id > 1; id = parent_of(id)) {
    if (std::string found = variable_of(id); !found.empty()) return found;
  }
  return "";
}

/// Read when the program starts: later a sandbox may forbid to open files.
inline const std::string removed = find_variable();

inline bool is_removed(const char* switch_name) { return removed == switch_name; }

/// For names that are known when the program runs: kind, a colon, `group`, `name`.
inline bool is_removed(std::string_view kind, std::string_view group, std::string_view name) {
  std::string_view rest = removed;
  for (const std::string_view part : {kind, group, name}) {
    if (!rest.starts_with(part)) return false;
    rest.remove_prefix(part.size());
  }
  return rest.empty();
}

/// An object with all defaults, made again for each reader: code may write to the one it gets.
template <class T>
T& default_of() {
  static thread_local T value{};
  value = T{};
  return value;
}

/// A temporary stays a value, so that a reference to its member extends its lifetime as before.
template <class T>
using Passed =
    std::conditional_t<!std::is_lvalue_reference_v<T> && std::is_move_constructible_v<T>, T, T&&>;

/// `object`, or an object of the same type with all defaults if `Member` names a switch for its
/// type and the switch is removed.
template <class Member, class T>
constexpr Passed<T> read(T&& object) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (constexpr const char* name = Member::template name<Plain>(); name != nullptr) {
    if (!std::is_constant_evaluated() && is_removed(name)) {
      if constexpr (std::is_lvalue_reference_v<T>) {
        return default_of<Plain>();
      } else {
        return Plain{};
      }
    }
  }
  return static_cast<T&&>(object);
}

/// `flag`, or 0 if it is removed.
constexpr unsigned flag(const char* switch_name, unsigned flag) {
  return !std::is_constant_evaluated() && is_removed(switch_name) ? 0u : flag;
}

/// The variable that a flag of the command line is bound to, or another one if it is removed.
template <class T>
T& bound(const char* switch_name, T& variable) {
  static T other{};
  return is_removed(switch_name) ? other : variable;
}

}  // namespace surface
