#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

/// Part of the copy of the tree that tools/surface builds. If the variable SURFACE_MUTANT names a
/// switch, the readers of the switch get its default, as if it had not been set.
namespace surface {

inline const char* removed() {
  static const char* const name = std::getenv("SURFACE_MUTANT");
  return name;
}

inline bool is_removed(const char* switch_name) {
  return removed() != nullptr && std::strcmp(removed(), switch_name) == 0;
}

/// For names that are known when the program runs: kind, a colon, `group`, `name`.
inline bool is_removed(std::string_view kind, std::string_view group, std::string_view name) {
  if (removed() == nullptr) return false;
  std::string_view rest = removed();
  for (const std::string_view part : {kind, group, name}) {
    if (!rest.starts_with(part)) return false;
    rest.remove_prefix(part.size());
  }
  return rest.empty();
}

/// An object with all defaults that lives as long as the program.
template <class T>
T& default_of() {
  static T value{};
  return value;
}

/// `object`, or an object of the same type with all defaults if it is a `Struct` and the switch is
/// removed.
template <class Struct, class T>
constexpr T&& read(const char* switch_name, T&& object) {
  if constexpr (std::is_same_v<std::remove_cvref_t<T>, Struct>) {
    if (!std::is_constant_evaluated() && is_removed(switch_name)) {
      return static_cast<T&&>(default_of<std::remove_cvref_t<T>>());
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
