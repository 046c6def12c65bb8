#include "generator.hpp"

namespace opmux::property {

std::string Generator::token(const World& world) {
  const Candidate& some = one_of(world.candidates);
  const Backend& backend = one_of(world.backends);
  switch (below(12)) {
    case 0: return "default";
    case 1: return "vendor";
    case 2: return "reference";
    case 3: return one_of({"flaggems", "flagos"});
    case 4: return one_of({"vendor:acme", "vendor:zeta", "vendor:none"});
    case 5: return "impl:" + some.id;
    case 6: return "impl:" + world.schema.name + "/absent.v1";
    case 7: return "*/" + backend.name + ".*";
    case 8: return world.schema.name + "/*.big*";
    case 9: return "bl*d/*x*." + one_of<std::string>({"v", "a"}) + "*";
    default: return world.schema.name + "/" + backend.name + ".*";
  }
}

Generator::Words Generator::tokens(const World& world) {
  Words list;
  for (uint64_t n = 1 + below(3); n > 0; --n) list.push_back(token(world));
  return list;
}

/// A condition computed from two dimensions, e.g. "M * N > 64".
Condition Generator::computed() {
  const Words dims{"M", "N", "H", "K", "rows"};
  const std::string text = one_of(dims) + " " + one_of<std::string>({"+", "-", "*", "/", "%"}) +
                           " " + one_of(dims) + " " +
                           one_of<std::string>({"==", "!=", "<", "<=", ">", ">="}) + " " +
                           std::to_string(one_of({0, 1, 4, 16, 64, 256}));
  return Condition::parse(text).value();
}

Condition Generator::leaf(const World& world) {
  const Words tensors = args_of(world.schema, true), scalars = args_of(world.schema, false);
  const std::string tensor = chance(4) ? "nowhere" : one_of(tensors);
  const std::string any = one_of(world.schema.args).name;
  const auto how = one_of({Compare::equal, Compare::not_equal, Compare::less, Compare::less_equal,
                           Compare::greater, Compare::greater_equal, Compare::multiple_of});
  switch (below(17)) {
    case 16: {
      Words floats;
      for (const Arg& arg : world.schema.args) {
        if (arg.type == Arg::Type::floating) floats.push_back(arg.name);
      }
      const std::string name = floats.empty() || chance(10) ? any : one_of(floats);
      if (how == Compare::multiple_of) return Condition::scalar(name, Compare::greater, 0);
      return Condition::real(name, how, one_of({0.0, 0.5, 0.75, 1.0}));
    }
    case 14:
    case 15: return computed();
    case 0: return Condition::rows(how, one_of({1, 4, 16}));
    case 1: return Condition::dtype(tensor, dtype());
    case 2: return Condition::rank(tensor, how, one_of({1, 2, 3}));
    case 3: return Condition::device(tensor, one_of({1, 2}));
    case 4: return Condition::present(any);
    case 5: return Condition::contiguous(tensor);
    case 6: return Condition::aligned(tensor, one_of({2, 16, 64}));
    case 7: return Condition::layout(tensor, one_of({"01", "10", "012", "201"}));
    case 8:
      return Condition::scalar(scalars.empty() ? any : one_of(scalars), how, one_of({1, 2, 3}));
    case 9: return Condition::ambient(one_of({"grad", "capturing", "deterministic", "training"}));
    case 10: return Condition::tag(static_cast<uint32_t>(below(3)));
    default: return Condition::dim(one_of({"M", "N", "H", "K"}), how, one_of({1, 3, 4, 16, 64}));
  }
}

Condition Generator::condition(const World& world, int depth) {
  const uint64_t form = depth == 0 ? 0 : below(6);
  if (form < 3) return leaf(world);
  const Condition first = condition(world, depth - 1);
  if (form == 3) return !first;
  const Condition second = condition(world, depth - 1);
  return form == 4 ? first && second : first || second;
}

Rule Generator::rule(const World& world) {
  Rule rule;
  rule.op = one_of({"*", "blend", "blend", "bl*", "*d"});
  if (chance(60)) rule.when = condition(world, 2);
  if (chance(15)) rule.require = tokens(world);
  if (chance(30)) rule.prefer = tokens(world);
  if (chance(12)) rule.order = tokens(world);
  if (chance(20)) rule.deny = {token(world)};
  if (chance(12)) rule.allow = tokens(world);
  if (chance(10)) rule.strict = chance(50);
  for (uint64_t n = below(3); n > 0 && chance(60); --n) {
    // Powers of two and integers, so that sums and products are exact in any order.
    rule.boost.push_back({token(world), one_of({0.0, 50.0, -50.0, 1000.0, -1000.0}),
                          one_of({1.0, 2.0, 0.5, 64.0, 0.015625})});
  }
  if (chance(40)) rule.rank = one_of({0, 10, 50, 60, 1000});
  rule.expired = chance(12);
  return rule;
}

Policy Generator::policy(const World& world) {
  Policy policy;
  if (chance(30)) policy.prefer = tokens(world);
  if (chance(8)) policy.require = tokens(world);
  if (chance(15)) policy.deny = {token(world)};
  if (chance(8)) policy.allow = tokens(world);
  if (chance(10)) policy.strict = chance(50);
  if (chance(10)) policy.allow_vendors = {one_of({"acme", "none"})};
  if (chance(10)) policy.deny_vendors = {one_of({"acme", "zeta", "none"})};
  if (chance(10)) policy.per_op[world.schema.name] = tokens(world);
  if (chance(3)) policy.per_op["other"] = tokens(world);
  for (uint64_t n = below(one_of({1u, 3u, 8u})); n > 0; --n) policy.rules.push_back(rule(world));
  if (chance(90)) policy.rules.push_back({.op = "*", .allow_none = true});
  return policy;
}

Policy Generator::environment(const World& world) {
  Policy policy;
  if (chance(40)) policy.prefer = tokens(world);
  if (chance(20)) policy.strict = chance(50);
  if (chance(20)) policy.allow_vendors = {one_of({"acme", "zeta"}), "none"};
  if (chance(20)) policy.deny_vendors = {one_of({"acme", "zeta", "none"})};
  if (chance(20)) policy.per_op[world.schema.name] = tokens(world);
  return policy;
}

}  // namespace opmux::property
