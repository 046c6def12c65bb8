#include <opmux/typed.hpp>

#include "dispatch/compiled_operator.hpp"

namespace opmux::detail {
namespace {

using schema::Access;
using schema::ArgType;

const char* word_of(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::in: return "In";
    case ParameterKind::out: return "Out";
    case ParameterKind::inout: return "InOut";
    case ParameterKind::integer: return "an integer";
    case ParameterKind::floating: return "a floating point number";
    case ParameterKind::boolean: return "bool";
    case ParameterKind::string: return "std::string_view";
    case ParameterKind::int_list: return "a list of int64_t";
  }
  return "";
}

bool fits(const schema::ArgSpec& spec, ParameterKind kind) {
  switch (spec.type) {
    case ArgType::tensor:
      return kind == (spec.access == Access::in    ? ParameterKind::in
                      : spec.access == Access::out ? ParameterKind::out
                                                   : ParameterKind::inout);
    case ArgType::integer: return kind == ParameterKind::integer;
    case ArgType::floating:
      return kind == ParameterKind::floating || kind == ParameterKind::integer;
    case ArgType::boolean: return kind == ParameterKind::boolean;
    case ArgType::enumeration:
      return kind == ParameterKind::integer || kind == ParameterKind::string;
    case ArgType::string: return kind == ParameterKind::string;
    case ArgType::int_list: return kind == ParameterKind::int_list;
    case ArgType::tensor_list: return false;
  }
  return false;
}

}  // namespace

Status compare_signature(const Operator& op, const std::vector<ParameterKind>& parameters) {
  const schema::Schema& schema = *op.slot().schema;
  const auto differs = [&](std::string text) {
    return Status(
        Code::invalid_argument, "schema.signature",
        "the C++ signature does not match " + schema.canonical() + ": " + std::move(text));
  };
  if (parameters.size() > schema.args.size()) {
    return differs("it has " + std::to_string(parameters.size()) + " parameters, the schema " +
                   std::to_string(schema.args.size()) + " arguments");
  }
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const schema::ArgSpec& spec = schema.args[i];
    if (i >= parameters.size()) {
      if (spec.omittable()) continue;
      return differs("argument " + spec.name + " has no default and no parameter");
    }
    if (fits(spec, parameters[i])) continue;
    return differs("parameter " + std::to_string(i + 1) + " is " + word_of(parameters[i]) +
                   ", argument is " + schema.argument_text(i));
  }
  return {};
}

Outcome end_with(const CallFrame& call, const Status& status) {
  if (status.ok()) return Outcome::ok;
  const bool known = status.code() <= Code::device_lost;
  return call.end(known ? static_cast<Outcome>(status.code()) : Outcome::failed, status.message());
}

}  // namespace opmux::detail
