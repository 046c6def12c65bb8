#pragma once

#include <memory>
#include <string>
#include <utility>

#include "registry/snapshot.hpp"
#include "schema/schema.hpp"
#include "schema/standard_schemas.hpp"

namespace opmux::test {

/// An implementation that has only a name and a backend.
inline registry::ImplementationPtr named_only(const std::string& op, const char* rest, Kind kind) {
  auto one = std::make_shared<registry::ImplementationRecord>();
  one->id = op + "/" + rest;
  one->op = op;
  one->kind = kind;
  one->vendor = kind == Kind::vendor ? "acme" : "";
  one->backend = std::make_shared<registry::Backend>(registry::BackendDraft{});
  return one;
}

/// The standard operators, each with three implementations.
inline registry::RegistrySnapshot standard_registry() {
  registry::RegistrySnapshot all;
  for (const schema::StandardSchema& text : schema::standard_schemas()) {
    auto schema = schema::parse_schema(text.text);
    if (!schema) continue;
    const std::string name = schema->name;
    registry::OperatorRecord record;
    record.schema = std::make_shared<const schema::Schema>(std::move(*schema));
    record.implementations = {named_only(name, "acme.v1", Kind::vendor),
                              named_only(name, "reference.scalar", Kind::reference),
                              named_only(name, "simd.v1", Kind::default_)};
    registry::put_operator(all, std::move(record));
  }
  return all;
}

}  // namespace opmux::test
