#include "registry/names.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "registry/schema_names.hpp"

namespace opmux {

std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::default_: return "default";
    case Kind::vendor: return "vendor";
    case Kind::reference: return "reference";
  }
  return "unknown";
}

}  // namespace opmux

namespace opmux::registry {
namespace {

constexpr std::array<std::string_view, 4> kTokens{"default", "vendor", "flaggems", "flagos"};
constexpr std::array<std::string_view, 2> kReferenceProviders{"reference", "own"};

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool inside_a_name(char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; }

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Status malformed(std::string_view id) {
  return {Code::invalid_argument, "registry.name",
          base::concat("'", id,
                       "' is not an implementation id: the form is operator/provider.variant, "
                       "each part [a-z][a-z0-9_]* of at most 64 bytes")};
}

}  // namespace

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && lower(name.front()) &&
         std::all_of(name.begin(), name.end(), inside_a_name);
}

bool valid_operator_name(std::string_view name) {
  return valid_dotted_name(name) && std::count(name.begin(), name.end(), '.') <= 1;
}

bool valid_provider(std::string_view name, Kind kind) {
  if (!valid_name(name) || contains(kTokens, name)) return false;
  return kind == Kind::reference || !contains(kReferenceProviders, name);
}

bool valid_dotted_name(std::string_view name) {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    if (!valid_name(name.substr(0, dot))) return false;
    name.remove_prefix(dot + 1);
  }
  return valid_name(name);
}

Result<ImplementationId> parse_implementation_id(std::string_view id) {
  const size_t slash = id.find('/');
  if (slash == id.npos) return malformed(id);
  const std::string_view op = id.substr(0, slash), rest = id.substr(slash + 1);
  const size_t dot = rest.find('.');
  if (dot == rest.npos) return malformed(id);
  const std::string_view provider = rest.substr(0, dot), variant = rest.substr(dot + 1);
  if (!valid_operator_name(op) || !valid_name(provider) || !valid_name(variant)) {
    return malformed(id);
  }
  return ImplementationId{std::string(op), std::string(provider), std::string(variant)};
}

}  // namespace opmux::registry
