#include "tuner/measure/cell_spec.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/line_records.hpp"
#include "base/text.hpp"
#include "conformance/shaper.hpp"
#include "verify/expected.hpp"

namespace opmux::tuner {
namespace {

using conformance::Case;
using conformance::CaseArgument;

constexpr std::string_view kRows = "rows";
/// Cases that are tried, because the generators make some invalid on purpose.
constexpr uint64_t kMostDraws = 64;

Status wrong(const std::string& message) { return {Code::invalid_argument, "tune.cell", message}; }

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const char* const start = text.data();
  const char* const end = start + text.size();
  const auto [at, error] = std::from_chars(start, end, number);
  if (error != std::errc() || at != end || number < 1) return {};
  return number;
}

bool is_number(const std::string& text) { return text[0] >= '0' && text[0] <= '9'; }

/// Whether `--dtype f32` means this argument: not indices, and not 8-bit weights.
bool is_wide_float(DType dtype) { return dtype == f32 || dtype == f16 || dtype == bf16; }

bool has_leading(const ArgumentInfo& info) { return !info.dims.empty() && info.dims[0] == "..."; }

/// The sizes of the named dimensions of the tensors of a case, and "rows" if it has any.
std::map<std::string, int64_t> dims_of(const Case& c) {
  std::map<std::string, int64_t> dims;
  for (const CaseArgument& argument : c.arguments) {
    if (!argument.is_tensor() || !argument.present) continue;
    const std::vector<std::string>& names = argument.info->dims;
    const size_t skipped = has_leading(*argument.info) ? 1 : 0;
    const std::vector<int64_t>& shape = argument.tensor.shape;
    const size_t leading = shape.size() + skipped - names.size();
    for (size_t i = skipped; i < names.size(); ++i) {
      if (!is_number(names[i])) dims[names[i]] = shape[leading + i - skipped];
    }
  }
  if (!c.leading.empty()) dims[std::string(kRows)] = c.rows();
  return dims;
}

std::string dtypes_of(const Case& c) {
  std::string text;
  for (const CaseArgument& argument : c.arguments) {
    if (!argument.is_tensor() || !argument.present) continue;
    text += (text.empty() ? "" : ",") + name_of(argument.tensor.dtype);
  }
  return text;
}

}  // namespace

Result<std::vector<std::pair<std::string, int64_t>>> read_dims(std::string_view text) {
  std::vector<std::pair<std::string, int64_t>> dims;
  while (!text.empty()) {
    std::string_view size = base::take_until(text, ',');
    const std::string_view word = size;
    const std::string_view name = base::take_until(size, '=');
    const std::optional<int64_t> number = number_of(size);
    if (name.empty() || !number) {
      return wrong(base::concat("'", word, "' is not a size; write sizes like N=2048,K=2048"));
    }
    dims.emplace_back(name, *number);
  }
  return dims;
}

Result<tune::Range> read_over(std::string_view text) {
  std::string_view rest = text;
  tune::Range range;
  range.dim = base::take_until(rest, '=');
  const size_t dots = rest.find("..");
  const std::optional<int64_t> first = number_of(rest.substr(0, dots));
  const std::optional<int64_t> last =
      number_of(dots == std::string_view::npos ? "" : rest.substr(dots + 2));
  if (range.dim.empty() || !first || !last || *first > *last) {
    return wrong(base::concat("'", text, "' is not a range; write one like M=1..256"));
  }
  range.first = *first;
  range.last = *last;
  return range;
}

Result<CellPlan> CellPlan::make(const Operator& op, const CellSpec& spec, uint32_t threads) {
  CellPlan plan(op, spec);
  plan.infos_ = op.arguments();
  plan.range_ = spec.over.value_or(tune::Range{});
  if (Status status = plan.check_names(); !status.ok()) return status;
  if (Status status = plan.fill_cell(threads); !status.ok()) return status;
  return plan;
}

Status CellPlan::check_names() const {
  const auto known = [&](const std::string& name) {
    return std::ranges::any_of(infos_, [&](const ArgumentInfo& info) {
      const bool is_rows = name == kRows && has_leading(info);
      return is_rows || std::ranges::find(info.dims, name) != info.dims.end();
    });
  };
  std::vector<std::string> names;
  for (const auto& [name, size] : spec_.dims) names.push_back(name);
  if (spec_.over) names.push_back(range_.dim);
  for (const std::string& name : names) {
    if (!known(name))
      return wrong(base::concat(spec_.op, " has no dimension '", name, "': ", op_.schema()));
  }
  const auto is_tensor = [&](std::string_view name) {
    return std::ranges::any_of(infos_, [&](const ArgumentInfo& info) {
      return info.name == name && info.type == ArgTag::tensor;
    });
  };
  for (const std::string& name : spec_.with) {
    if (!is_tensor(name))
      return wrong(base::concat(spec_.op, " has no tensor '", name, "': ", op_.schema()));
  }
  for (const std::string& word : spec_.dtypes) {
    std::string_view dtype = word;
    const bool of_one = word.find('=') != std::string::npos;
    const std::string_view name = of_one ? base::take_until(dtype, '=') : std::string_view();
    if (parse_dtype(dtype).bits == 0)
      return wrong(base::concat("'", dtype, "' is not a dtype such as f32, bf16 or i8"));
    if (of_one && !is_tensor(name))
      return wrong(base::concat(spec_.op, " has no tensor '", name, "': ", op_.schema()));
  }
  return {};
}

Status CellPlan::fill_cell(uint32_t threads) {
  // Sizes that nothing determines differ between cases.
  const auto sizes = [&](int64_t value, uint64_t number) {
    std::map<std::string, int64_t> dims = dims_of(draw(value, number, false));
    dims.erase(range_.dim);
    return dims;
  };
  const std::map<std::string, int64_t> dims = sizes(range_.first, 0);
  std::set<std::string> missing;
  for (uint64_t number = 1; number < 6; ++number) {
    for (const auto& [name, size] : sizes(range_.first, number)) {
      const auto at = dims.find(name);
      if (at == dims.end() || at->second != size) missing.insert(name);
    }
  }
  if (!missing.empty()) {
    const std::vector<std::string> names(missing.begin(), missing.end());
    return wrong(base::concat(spec_.op, " needs sizes of ", base::join(names, ", "),
                              "; write them like --dim ", names.front(), "=64"));
  }
  if (sizes(range_.last, 0) != dims) {
    return wrong(base::concat("other dimensions of ", spec_.op, " change with ", range_.dim,
                              ", and only one can vary; ", op_.schema()));
  }
  cell_.dtypes = dtypes_of(draw(range_.first, 0, false));
  cell_.dims.assign(dims.begin(), dims.end());
  cell_.threads = threads;
  return {};
}

Case CellPlan::call_at(int64_t value) const {
  for (uint64_t number = 0; number + 1 < kMostDraws; ++number) {
    Case drawn = draw(value, number, true);
    if (!drawn.invalid && dtypes_of(drawn) == cell_.dtypes) return drawn;
  }
  return draw(value, kMostDraws - 1, true);
}

Case CellPlan::shapes_at(int64_t value) const { return draw(value, 0, false); }

/// Sets which tensors the call passes, and their types.
void CellPlan::set_tensors(conformance::Draft& draft) const {
  const auto passed = [&](const ArgumentInfo& info) {
    return std::ranges::find(spec_.with, info.name) != spec_.with.end();
  };
  for (const ArgumentInfo& info : infos_) {
    if (info.optional) draft.present(info.name, passed(info));
  }
  for (const std::string& word : spec_.dtypes) {
    if (word.find('=') != std::string::npos) continue;
    for (const ArgumentInfo& info : infos_) {
      if (info.type == ArgTag::tensor && is_wide_float(draft.dtype(info.name)))
        draft.dtype(info.name, parse_dtype(word));
    }
  }
  for (const std::string& word : spec_.dtypes) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      draft.dtype(word.substr(0, equals), parse_dtype(std::string_view(word).substr(equals + 1)));
  }
}

/// Sets the scalars and elements of a recorded call.
void CellPlan::set_given(Case& drawn) const {
  for (const CellSpec::Given& given : spec_.given) {
    CaseArgument& argument = drawn.argument(given.name);
    if (!argument.is_tensor()) {
      argument.present = true;
      argument.i64 = given.i64;
      argument.f64 = given.f64;
    } else if (argument.read() && given.bytes.size() == argument.tensor.packed.size()) {
      argument.tensor.packed = given.bytes;
      argument.tensor.values = verify::values_of(given.bytes, argument.tensor.dtype);
    }
  }
}

Case CellPlan::draw(int64_t value, uint64_t number, bool with_elements) const {
  const conformance::Shaper& shaper = conformance::find_shaper(spec_.op);
  conformance::Draft draft(spec_.op, infos_, 1, number);
  std::vector<std::pair<std::string, int64_t>> sizes = spec_.dims;
  if (spec_.over) sizes.emplace_back(range_.dim, value);
  std::vector<int64_t> leading;
  for (const auto& [name, size] : sizes) {
    if (name == kRows) leading = {size};
    if (name != kRows) draft.fix_dim(name, size);
  }
  if (shaper.shape != nullptr) shaper.shape(draft);
  draft.leading() = leading;
  draft.make_typical();
  set_tensors(draft);
  if (with_elements) {
    draft.make_tensors();
    if (shaper.fill != nullptr) shaper.fill(draft);
  } else {
    draft.make_shapes();
  }
  Case drawn = draft.finish();
  set_given(drawn);
  return drawn;
}

}  // namespace opmux::tuner
