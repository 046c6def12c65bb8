#include <sstream>

#include "world.hpp"

namespace opmux::property {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

namespace {

std::string default_text(const Arg& arg) {
  const Value& value = *arg.default_value;
  switch (arg.type) {
    case Arg::Type::integer: return std::to_string(value.number);
    case Arg::Type::boolean: return value.number != 0 ? "true" : "false";
    case Arg::Type::enumeration: return arg.words[static_cast<size_t>(value.number)];
    case Arg::Type::floating: return std::to_string(value.real);
    case Arg::Type::string: return "\"" + value.text + "\"";
    default: break;
  }
  std::string list;
  for (const int64_t item : value.list) list += (list.empty() ? "" : ", ") + std::to_string(item);
  return "[" + list + "]";
}

std::string type_text(const Arg& arg) {
  switch (arg.type) {
    case Arg::Type::integer: return "int";
    case Arg::Type::boolean: return "bool";
    case Arg::Type::enumeration: return "enum{" + joined(arg.words) + "}";
    case Arg::Type::floating: return "float";
    case Arg::Type::string: return "str";
    case Arg::Type::list: return "int[]";
    case Arg::Type::tensor: break;
  }
  return arg.dtype_variable.empty() ? "Tensor" : "Tensor(" + arg.dtype_variable + ")";
}

std::string arg_text(const Arg& arg) {
  std::string text = (arg.output ? "out " : "") + type_text(arg) + (arg.optional ? "?" : "") + " ";
  text += arg.name;
  if (arg.type == Arg::Type::tensor) {
    std::vector<std::string> dims = arg.dims;
    if (arg.leading) dims.insert(dims.begin(), "...");
    text += arg.any_shape ? "[*]" : "[" + joined(dims) + "]";
  }
  return arg.default_value ? text + " = " + default_text(arg) : text;
}

std::string where_text(const Where& where) {
  const std::string factor = std::to_string(where.factor);
  if (where.compare == "%") return where.left + " % " + factor + " == 0";
  const std::string right = where.right.empty() ? factor : factor + " * " + where.right;
  return where.left + " " + where.compare + " " + right;
}

/// Whether the first `count` arguments mention a dimension or have that name.
bool mentioned(const Schema& schema, size_t count, const std::string& name) {
  if (name.empty()) return true;
  for (size_t i = 0; i < count; ++i) {
    if (schema.args[i].name == name) return true;
    for (const std::string& dim : schema.args[i].dims) {
      if (dim == name) return true;
    }
  }
  return false;
}

void put(std::ostream& out, const char* field, const std::vector<std::string>& words) {
  if (!words.empty()) out << " " << field << "=[" << joined(words) << "]";
}

void put(std::ostream& out, const Rule& rule) {
  out << " {" << rule.op << " rank " << rule.rank;
  if (rule.when) out << " when " << rule.when->to_string();
  put(out, "require", rule.require);
  put(out, "prefer", rule.prefer);
  put(out, "order", rule.order);
  put(out, "deny", rule.deny);
  put(out, "allow", rule.allow);
  for (const Boost& b : rule.boost)
    out << " boost " << b.impl << " +" << b.add << " *" << b.multiply;
  if (rule.strict) out << " strict=" << *rule.strict;
  out << (rule.expired ? " expired" : "") << (rule.allow_none ? " allow_none" : "") << "}";
}

void put(std::ostream& out, const TensorView& tensor) {
  if (!tensor.present()) {
    out << "none";
    return;
  }
  out << name_of(tensor.dtype()) << "[";
  for (const int64_t size : tensor.shape()) out << " " << size;
  out << " / ";
  for (const int64_t stride : tensor.strides()) out << " " << stride;
  out << "] " << tensor.data() << " " << name_of(tensor.device());
}

void put(std::ostream& out, const char* what, const std::optional<std::vector<FactRef>>& facts) {
  out << " " << what << "(";
  if (!facts) out << "default";
  for (const FactRef& fact : facts.value_or(std::vector<FactRef>{}))
    out << " " << fact.kind << ":" << fact.name;
  out << ")";
}

void put(std::ostream& out, const World& world, const Candidate& c) {
  const Backend& backend = world.backends[c.backend];
  out << "  " << c.id << " " << name_of(backend.kind) << " " << backend.vendor << " priority "
      << c.priority << " flags " << c.flags << " args " << c.known_args << text_of(c.caps)
      << (c.registered ? "" : " withdrawn") << (backend.enabled ? "" : " disabled")
      << (backend.available ? "" : " unavailable");
  for (const Hint& hint : c.hints) out << " hint " << hint.priority << " for " << hint.range();
  if (c.verifier) {
    out << " verify " << c.verifier->asks.kind << ":" << c.verifier->asks.name << " % "
        << c.verifier->modulo << " == " << c.verifier->rest
        << (c.verifier->breaks ? " breaks" : "");
    put(out, "reads", c.verifier->reads);
  }
  if (c.prepares) put(out, "plan reads", c.plan_reads);
  out << "\n";
}

}  // namespace

std::string text_of(const Schema& schema, size_t arg_count) {
  std::vector<std::string> args, conditions;
  for (size_t i = 0; i < arg_count; ++i) args.push_back(arg_text(schema.args[i]));
  for (const Where& where : schema.where) {
    if (mentioned(schema, arg_count, where.left) && mentioned(schema, arg_count, where.right))
      conditions.push_back(where_text(where));
  }
  const std::string where = conditions.empty() ? "" : " where " + joined(conditions, " && ");
  return schema.name + "(" + joined(args) + ")" + where;
}

std::string text_of(const Policy& policy) {
  std::ostringstream out;
  put(out, "prefer", policy.prefer);
  put(out, "require", policy.require);
  put(out, "deny", policy.deny);
  put(out, "allow", policy.allow);
  put(out, "allow_vendors", policy.allow_vendors);
  put(out, "deny_vendors", policy.deny_vendors);
  if (policy.strict) out << " strict=" << *policy.strict;
  for (const auto& [op, order] : policy.per_op) put(out, (op + " order").c_str(), order);
  for (const Rule& rule : policy.rules) put(out, rule);
  return out.str();
}

std::string text_of(const Caps& caps) {
  std::ostringstream out;
  for (const auto& rule : caps.dtype_rules) {
    out << " dtype(" << rule.arg;
    for (const DType dtype : rule.allowed) out << " " << name_of(dtype);
    out << ")";
  }
  for (const auto& t : caps.tensor_rules) {
    out << " tensor(" << t.arg << " flags " << t.flags << " rank " << t.min_rank << "-"
        << t.max_rank << " aligned " << t.alignment << " layout " << t.layout << ")";
  }
  for (const auto& rule : caps.scalar_rules) {
    out << " scalar(" << rule.arg;
    for (const int64_t value : rule.allowed) out << " " << value;
    out << ")";
  }
  for (const auto& rule : caps.dim_rules)
    out << " dim(" << rule.dim << " relation " << rule.relation << " " << rule.value << ")";
  out << (caps.no_grad ? " no_grad" : "") << (caps.features.empty() ? "" : " features");
  if (caps.device_type != OPMUX_DEVICE_CPU) out << " device " << caps.device_type;
  return out.str();
}

std::string text_of(const World& world) {
  std::ostringstream out;
  out << text_of(world.schema, world.schema.args.size()) << "\n";
  for (const Candidate& candidate : world.candidates) put(out, world, candidate);
  out << "  code:" << text_of(world.code) << "\n  environment:" << text_of(world.environment);
  return out.str();
}

std::string text_of(const Call& call) {
  std::ostringstream out;
  out << "  call:";
  for (const Value& value : call.given) {
    out << "\n    ";
    switch (value.tag) {
      case ArgTag::none: out << "none"; break;
      case ArgTag::tensor: put(out, value.tensor); break;
      case ArgTag::floating: out << value.real; break;
      case ArgTag::string: out << '"' << value.text << '"'; break;
      case ArgTag::integer_list:
        for (const int64_t item : value.list) out << item << ",";
        break;
      default: out << value.number;
    }
  }
  out << "\n  grad " << call.ambient.grad << " capturing " << call.ambient.capturing
      << " deterministic " << call.ambient.deterministic << " training " << call.ambient.training
      << " tag " << call.tag;
  for (const Policy& scope : call.scopes) out << "\n  scope:" << text_of(scope);
  return out.str();
}

}  // namespace opmux::property
