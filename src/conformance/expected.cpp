#include "conformance/expected.hpp"

#include "conformance/draft.hpp"

namespace opmux::conformance {
namespace {

Case for_reference(const Case& c) {
  Case plain = c;
  const verify::CallView view = c.view();
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    CaseArgument& argument = plain.arguments[i];
    if (!argument.is_tensor() || !argument.present) continue;
    if (verify::widens(view, view.arguments[i])) argument.tensor.dtype = f32;
    set_contiguous(argument.tensor);
    if (argument.read()) argument.tensor.pack();
  }
  return plain;
}

}  // namespace

Result<Expected> expect(const Operator& op, const Case& c, Arenas& arenas) {
  const Case plain = for_reference(c);
  const Placed placed(arenas, plain, std::byte{0xff});
  const Status status = op.call_arguments(placed.arguments());
  if (!status.ok()) return status;
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < plain.arguments.size(); ++i) {
    if (!plain.arguments[i].written()) continue;
    values.push_back(verify::values_of(placed.elements(i), plain.arguments[i].tensor.dtype));
  }
  const bool nothing = c.invalid || c.empty();
  return nothing ? verify::exactly(c.view(), std::move(values))
                 : verify::bounded(c.view(), std::move(values));
}

std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got) {
  const verify::CallView view = c.view();
  const auto mismatch = verify::judge(view, expected, got);
  if (!mismatch) return {};
  return Problem{"value", mismatch->describe(view)};
}

}  // namespace opmux::conformance
