#include <algorithm>

#include "base/text.hpp"
#include "registry/schema.hpp"

namespace opmux::registry {
namespace {

using base::concat;
using Op = WhereExpression::Op;

Status difference(const Schema& current, std::string_view what) {
  return {Code::invalid_argument, "schema.difference",
          concat("differs from the registered ", current.name, ": ", what)};
}

/// Whether a condition reads an argument or dimension beyond the first `args` and `dims`.
bool is_about_added(const WhereExpression& condition, size_t args, size_t dims) {
  return std::any_of(condition.steps.begin(), condition.steps.end(), [&](const auto& step) {
    const auto index = static_cast<size_t>(step.index);
    return (step.op == Op::scalar && index >= args) || (step.op == Op::dim && index >= dims);
  });
}

std::vector<std::string> conditions(const Schema& schema, size_t args, size_t dims) {
  std::vector<std::string> texts;
  for (const WhereExpression& condition : schema.where) {
    if (!is_about_added(condition, args, dims)) texts.push_back(condition.text);
  }
  return texts;
}

std::string shown_conditions(const std::vector<std::string>& texts) {
  return texts.empty() ? "no where clause" : concat("where ", base::join(texts, " && "));
}

}  // namespace

Status check_evolution(const Schema& older, const Schema& current) {
  if (older.name != current.name) {
    return difference(current, concat("it is called ", older.name));
  }
  const size_t common = std::min(older.args.size(), current.args.size());
  for (size_t i = 0; i < common; ++i) {
    const std::string was = older.argument_text(i), is = current.argument_text(i);
    if (was == is) continue;
    return difference(current,
                      concat("argument ", i + 1, " is '", was, "', registered as '", is, "'"));
  }
  if (older.args.size() > common) {
    return difference(current, concat("argument ", common + 1, " is '", older.argument_text(common),
                                      "', the registered number of arguments is ", common));
  }
  for (size_t i = common; i < current.args.size(); ++i) {
    if (current.args[i].omittable()) continue;
    return difference(current, concat("argument ", i + 1, " '", current.argument_text(i),
                                      "' is missing and has no default"));
  }
  const auto was = conditions(older, common, older.dims.size());
  const auto is = conditions(current, common, older.dims.size());
  if (was == is) return {};
  return difference(current, concat("it has ", shown_conditions(was), ", the registered one has ",
                                    shown_conditions(is)));
}

}  // namespace opmux::registry
