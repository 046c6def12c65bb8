#include "registry/implementation/implementation_id.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.hpp"
#include "schema/schema.hpp"

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

bool valid_provider(std::string_view name, Kind kind) {
  if (!schema::valid_name(name) || contains(kTokens, name)) return false;
  return kind == Kind::reference || !contains(kReferenceProviders, name);
}

Result<ImplementationId> parse_implementation_id(std::string_view id) {
  const size_t slash = id.find('/');
  if (slash == id.npos) return malformed(id);
  const std::string_view op = id.substr(0, slash), rest = id.substr(slash + 1);
  const size_t dot = rest.find('.');
  if (dot == rest.npos) return malformed(id);
  const std::string_view provider = rest.substr(0, dot), variant = rest.substr(dot + 1);
  if (!schema::valid_operator_name(op) || !schema::valid_name(provider) ||
      !schema::valid_name(variant)) {
    return malformed(id);
  }
  return ImplementationId{std::string(op), std::string(provider), std::string(variant)};
}

}  // namespace opmux::registry
