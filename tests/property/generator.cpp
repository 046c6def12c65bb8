#include "generator.hpp"

#include <algorithm>
#include <cctype>

#include "ruling.hpp"

namespace opmux::property {
namespace {

constexpr const char* kOperator = "blend";

bool reads_as_integer(const Arg& arg) {
  return arg.type == Arg::Type::integer || arg.type == Arg::Type::boolean ||
         arg.type == Arg::Type::enumeration;
}

bool omittable(const Arg& arg) { return arg.optional || arg.default_value; }

}  // namespace

std::vector<std::string> dims_of(const Schema& schema) {
  std::vector<std::string> names;
  for (const Arg& arg : schema.args) {
    for (const std::string& dim : arg.dims) {
      const bool known = std::find(names.begin(), names.end(), dim) != names.end();
      if (!known && std::isalpha(static_cast<unsigned char>(dim[0])) != 0) names.push_back(dim);
    }
  }
  return names;
}

std::vector<std::string> args_of(const Schema& schema, bool tensors) {
  std::vector<std::string> names;
  for (const Arg& arg : schema.args) {
    if (tensors ? arg.type == Arg::Type::tensor : reads_as_integer(arg)) names.push_back(arg.name);
  }
  return names;
}

Arg Generator::tensor_arg(size_t index, bool output) {
  Arg arg;
  arg.name = "t" + std::to_string(index);
  arg.output = output;
  arg.optional = index != 0 && chance(35);
  arg.any_shape = index != 0 && chance(10);
  if (chance(30)) arg.dtype_variable = "E";
  if (arg.any_shape) return arg;
  arg.leading = chance(45);
  for (uint64_t n = below(arg.leading ? 3 : 4); n > 0; --n) {
    arg.dims.push_back(chance(6) ? "4" : std::string(one_of({"M", "N", "H", "K"})));
  }
  return arg;
}

Arg Generator::scalar_arg(size_t index) {
  Arg arg;
  arg.name = "s" + std::to_string(index);
  arg.type =
      one_of({Arg::Type::integer, Arg::Type::integer, Arg::Type::boolean, Arg::Type::enumeration,
              Arg::Type::enumeration, Arg::Type::floating, Arg::Type::string, Arg::Type::list});
  if (arg.type == Arg::Type::enumeration) arg.words = {"plain", "soft", "hard"};
  arg.optional = chance(20);
  if (!arg.optional) arg.default_value = scalar(arg);
  if (!arg.default_value) return arg;
  if (arg.type == Arg::Type::enumeration) {
    arg.default_value->tag = ArgTag::enumeration;
    arg.default_value->number %= 3;
  }
  if (arg.type == Arg::Type::floating) arg.default_value->tag = ArgTag::floating;
  return arg;
}

void Generator::add_where(Schema& schema) {
  const Words dims = dims_of(schema);
  if (dims.empty() || !chance(40)) return;
  const std::string& left = one_of(dims);
  if (const std::string& right = one_of(dims); chance(40) && right != left) {
    schema.where.push_back({left, one_of({"==", "<="}), one_of({1, 2}), right});
  } else {
    schema.where.push_back({left, one_of({"%", "<="}), one_of({2, 4, 96}), ""});
  }
  for (const Arg& arg : schema.args) {
    if (arg.type == Arg::Type::integer && chance(40))
      schema.where.push_back({arg.name, "<=", 6, ""});
  }
}

Schema Generator::schema() {
  Schema schema;
  schema.name = kOperator;
  const uint64_t outputs = 1 + below(5) / 4, inputs = below(4), scalars = below(4);
  for (size_t i = 0; i < outputs + inputs; ++i) schema.args.push_back(tensor_arg(i, i < outputs));
  for (size_t i = 0; i < scalars; ++i) schema.args.push_back(scalar_arg(i));
  if (chance(20)) {
    Arg last = tensor_arg(schema.args.size(), false);
    last.optional = true;
    schema.args.push_back(last);
  }
  add_where(schema);
  return schema;
}

std::vector<Backend> Generator::backends() {
  std::vector<Backend> all;
  const uint64_t count = 1 + below(6);
  for (size_t i = 0; i < count; ++i) {
    Backend backend;
    backend.name = std::string(1, static_cast<char>('a' + (i * 7) % 26)) + "x" + std::to_string(i);
    backend.kind = one_of({Kind::default_, Kind::vendor, Kind::vendor, Kind::reference});
    if (backend.kind == Kind::vendor || chance(20)) backend.vendor = one_of({"acme", "zeta"});
    backend.available = !chance(10);
    backend.enabled = !chance(8);
    all.push_back(backend);
  }
  return all;
}

void Generator::add_tensor_caps(const Schema& schema, Caps& caps) {
  const std::string arg = one_of(args_of(schema, true));
  switch (below(8)) {
    case 0: caps.contiguous(chance(30) ? "" : arg); break;
    case 1: caps.inner_contiguous(chance(30) ? "" : arg); break;
    case 2: caps.rank(arg, static_cast<int>(below(3)), static_cast<int>(2 + below(3))); break;
    case 3: caps.aligned(chance(30) ? "" : arg, one_of({2u, 16u, 64u, 4096u})); break;
    case 4: caps.layout(arg, one_of({"01", "10", "012", "102", "021"})); break;
    case 5: caps.present(chance(50) ? arg : one_of(schema.args).name); break;
    default:
      for (const Arg& optional : schema.args) {
        if (optional.optional) caps.absent(optional.name);
      }
  }
}

std::string Generator::dim(const Schema& schema) {
  const Words dims = dims_of(schema);
  const bool rows = std::any_of(schema.args.begin(), schema.args.end(),
                                [](const Arg& arg) { return arg.leading; });
  if (dims.empty()) return rows ? "rows" : "";
  return rows && chance(25) ? "rows" : one_of(dims);
}

std::vector<Hint> Generator::hints(const Schema& schema) {
  std::vector<Hint> hints;
  for (uint64_t n = 1 + below(2); n > 0; --n) {
    const std::string name = dim(schema);
    if (name.empty()) break;
    const int64_t least = one_of({0, 1, 2, 5, 16});
    hints.push_back({name, least, chance(40) ? 0 : least + one_of({0, 1, 4, 100}),
                     one_of({0, 100, 120, 150, 900})});
  }
  return hints;
}

Caps Generator::caps(const Schema& schema) {
  Caps caps;
  const Words scalars = args_of(schema, false);
  if (chance(25)) caps.dtypes({dtype(), dtype(), f32});
  if (chance(15)) caps.dtypes(one_of(args_of(schema, true)), {dtype(), dtype(), f32});
  if (chance(35)) add_tensor_caps(schema, caps);
  if (!scalars.empty() && chance(25)) caps.scalar(one_of(scalars), {0, 1});
  for (uint64_t n = below(3); n > 0; --n) {
    const std::string name = dim(schema);
    if (name.empty()) break;
    switch (below(4)) {
      case 0: caps.multiple_of(name, one_of({2, 3, 4, 16})); break;
      case 1: caps.at_least(name, one_of({1, 2, 16})); break;
      case 2: caps.at_most(name, one_of({4, 16, 128})); break;
      default: caps.equals(name, one_of({4, 16})); break;
    }
  }
  if (chance(10)) caps.inference_only();
  if (chance(3)) caps.cpu_features("no_such_feature");
  if (chance(5)) caps.device(2);
  return caps;
}

FactRef Generator::fact(const Schema& schema) {
  const Words dims = dims_of(schema), scalars = args_of(schema, false);
  const std::string tensor = one_of(args_of(schema, true));
  switch (below(10)) {
    case 0: return {OPMUX_FACT_DTYPE, tensor};
    case 1: return {OPMUX_FACT_RANK, tensor};
    case 2: return {OPMUX_FACT_PRESENT, one_of(schema.args).name};
    case 3: return {OPMUX_FACT_CONTIGUOUS, tensor};
    case 4: return {OPMUX_FACT_ALIGNMENT, tensor};
    case 5: return {OPMUX_FACT_LAYOUT, tensor};
    case 6: return {OPMUX_FACT_AMBIENT, one_of({"grad", "training"})};
    case 7:
      if (!scalars.empty()) return {OPMUX_FACT_SCALAR, one_of(scalars)};
      [[fallthrough]];
    default:
      if (dims.empty()) return {OPMUX_FACT_TAG, ""};
      return {OPMUX_FACT_DIM, one_of(dims)};
  }
}

Verifier Generator::verifier(const Schema& schema) {
  Verifier verifier;
  verifier.asks = fact(schema);
  if (!chance(20)) {
    verifier.reads.emplace();
    if (!chance(10)) verifier.reads->push_back(verifier.asks);
    if (chance(20)) verifier.reads->push_back(fact(schema));
  }
  verifier.modulo = one_of({2, 3, 5});
  verifier.rest = static_cast<int64_t>(below(2));
  verifier.breaks = chance(15);
  return verifier;
}

Candidate Generator::candidate(const World& world, size_t index) {
  Candidate candidate;
  candidate.backend = below(world.backends.size());
  candidate.id = world.schema.name + "/" + world.backends[candidate.backend].name + "." +
                 one_of({"v", "big", "a"}) + std::to_string(index);
  if (chance(40)) candidate.priority = one_of({0, 100, 100, 150, 200, 1000});
  if (chance(25)) candidate.hints = hints(world.schema);
  if (chance(70)) candidate.flags |= OPMUX_IMPL_DETERMINISTIC;
  if (chance(70)) candidate.flags |= OPMUX_IMPL_CAPTURE_SAFE;
  if (chance(70)) candidate.caps = caps(world.schema);
  candidate.known_args = world.schema.args.size();
  while (candidate.known_args > 1 && omittable(world.schema.args[candidate.known_args - 1]) &&
         chance(15)) {
    --candidate.known_args;
  }
  if (chance(15)) candidate.verifier = verifier(world.schema);
  candidate.prepares = chance(10);
  if (candidate.prepares && chance(60)) candidate.plan_reads = {fact(world.schema)};
  return candidate;
}

World Generator::world() {
  World world;
  world.schema = schema();
  world.backends = backends();
  const uint64_t most = one_of({4u, 8u, 32u});
  for (size_t i = 0, n = 1 + below(most); i < n; ++i)
    world.candidates.push_back(candidate(world, i));
  if (chance(40)) world.environment = environment(world);
  if (chance(40)) world.code = without_vain_rules(policy(world), world.schema);
  return world;
}

Ambient Generator::ambient() {
  return {.grad = chance(20),
          .capturing = chance(10),
          .deterministic = chance(15),
          .training = chance(20)};
}

}  // namespace opmux::property
