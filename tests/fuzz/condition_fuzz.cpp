// Conditions from arbitrary text: a parsed condition must compile, or report a problem inside the
// text, and evaluate.
#include <cstdlib>
#include <string_view>

#include "policy/conditions/condition_program.hpp"
#include "schema/dependencies.hpp"
#include "standard_registry.hpp"

namespace opmux::fuzz {
namespace {

const opmux::registry::RegistrySnapshot& known_operators() {
  static const auto* const known =
      new opmux::registry::RegistrySnapshot(opmux::test::standard_registry());
  return *known;
}

/// Evaluates the condition for a call of which only the schema is known.
void answer(const policy::ConditionProgram& program, const schema::Schema& schema) {
  schema::Arguments arguments;
  arguments.count = static_cast<uint32_t>(schema.args.size());
  schema::BoundDims dims;
  for (const int64_t size : {int64_t{-1}, int64_t{0}, int64_t{64}, INT64_MAX}) {
    dims.values.fill(size);
    const schema::Signature signature{&schema, &arguments, &dims, 5, 1};
    (void)program.answer(signature);
  }
  schema::Dependencies dependencies;
  program.add_dependencies(dependencies);
  (void)dependencies.facts();
}

void try_text(std::string_view text) {
  const auto condition = Condition::parse(text);
  if (!condition) {
    if (condition.error().reason() != "policy.when") std::abort();
    return;
  }
  if (condition->to_string() != text) std::abort();
  for (const char* const op : {"attention", "gelu_and_mul", "rms_norm"}) {
    const schema::Schema& schema = *known_operators().find(op)->schema;
    schema::ExpressionProblem problem;
    const auto program = policy::ConditionProgram::compile(*condition, schema, &problem);
    if (program) {
      answer(*program, schema);
    } else if (problem.text.empty() || problem.at > text.size()) {
      std::abort();
    }
  }
}

}  // namespace
}  // namespace opmux::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmux::fuzz::try_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
