#include "verify/expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "verify/bounds.hpp"

namespace opmux::verify {
namespace {

/// Doubles the bounds, because the reference may be off by the bound too, and allows tiny results
/// to be flushed to zero.
void finish_bounds(const CallView& c, ExpectedOutput& output) {
  const ArgumentView& argument = c.arguments[output.argument];
  const DType dtype = argument.tensor->dtype;
  if (!is_float(dtype)) return;
  const bool widened = widens(c, argument);
  for (size_t i = 0; i < output.bounds.size(); ++i) {
    double& bound = output.bounds[i];
    if (bound == 0) continue;
    bound = 2 * bound + kSmallest;
    if (!widened) bound += half_step(output.values[i], dtype);
  }
}

std::string index_text(const Tensor& tensor, size_t element) {
  std::string text;
  auto left = static_cast<int64_t>(element);
  for (size_t i = tensor.shape.size(); i > 0; --i) {
    if (!text.empty()) text.insert(0, ",");
    text.insert(0, std::to_string(left % tensor.shape[i - 1]));
    left /= tensor.shape[i - 1];
  }
  return "[" + text + "]";
}

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

bool fits(double got, double value, double bound, DType dtype) {
  if (std::isnan(value)) return std::isnan(got);
  if (!std::isfinite(bound)) return true;  // no bound is known for this element
  if (got == rounded(value, dtype)) return true;
  if (std::isinf(value)) return false;
  return got >= rounded(value - bound, dtype) && got <= rounded(value + bound, dtype);
}

}  // namespace

void ExpectedOutput::bound_relative(double relative) {
  for (size_t i = 0; i < values.size(); ++i) bounds[i] = std::abs(values[i]) * relative;
}

ExpectedOutput& Expected::of(const CallView& c, std::string_view name) {
  const auto position = static_cast<size_t>(&c.argument(name) - c.arguments.data());
  return *std::ranges::find(outputs, position, &ExpectedOutput::argument);
}

std::string Mismatch::place(const CallView& c) const {
  const ArgumentView& written = c.arguments[argument];
  return std::string(written.name) + index_text(*written.tensor, element);
}

std::string Mismatch::describe(const CallView& c) const {
  const DType dtype = c.arguments[argument].tensor->dtype;
  std::string text =
      place(c) + " is " + number_text(got) + ", expected " + number_text(rounded(expected, dtype));
  if (tolerance > 0 && std::isfinite(expected)) {
    text += " (the reference has " + number_text(expected) + " +- " + number_text(tolerance) +
            ", in " + name_of(dtype) + " from " +
            number_text(rounded(expected - tolerance, dtype)) + " to " +
            number_text(rounded(expected + tolerance, dtype)) + ")";
  }
  return text;
}

std::vector<double> values_of(std::span<const std::byte> packed, DType dtype) {
  const auto size = static_cast<size_t>(dtype.size_bytes());
  std::vector<double> values(packed.size() / size);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = read_element(packed.data() + i * size, dtype);
  return values;
}

bool widens(const CallView& c, const ArgumentView& argument) {
  const Bounds& bounds = find_bounds(c.op);
  return argument.written && argument.tensor != nullptr && is_float(argument.tensor->dtype) &&
         !argument.tied &&
         (bounds.sees_rounding == nullptr || !bounds.sees_rounding(c, argument.name));
}

Expected exactly(const CallView& c, std::vector<std::vector<double>> values) {
  Expected expected;
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    if (!c.arguments[i].written || c.arguments[i].tensor == nullptr) continue;
    std::vector<double>& own = values[expected.outputs.size()];
    std::vector<double> bounds(own.size(), 0.0);
    expected.outputs.push_back({i, std::move(own), std::move(bounds)});
  }
  return expected;
}

Expected bounded(const CallView& c, std::vector<std::vector<double>> values) {
  Expected expected = exactly(c, std::move(values));
  const Bounds& bounds = find_bounds(c.op);
  if (bounds.bound != nullptr) bounds.bound(c, expected);
  for (ExpectedOutput& output : expected.outputs) finish_bounds(c, output);
  return expected;
}

std::optional<Mismatch> judge(const CallView& c, const Expected& expected,
                              std::span<const std::vector<std::byte>> got) {
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    const ExpectedOutput& output = expected.outputs[o];
    const DType dtype = c.arguments[output.argument].tensor->dtype;
    const std::vector<double> values = values_of(got[o], dtype);
    for (size_t i = 0; i < values.size(); ++i) {
      if (fits(values[i], output.values[i], output.bounds[i], dtype)) continue;
      return Mismatch{output.argument, i, values[i], output.values[i], output.bounds[i]};
    }
  }
  return {};
}

}  // namespace opmux::verify
