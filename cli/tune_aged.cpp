#include "cli/tune_aged.hpp"

#include <optional>
#include <utility>

#include "base/line_records.hpp"
#include "base/text.hpp"
#include "tuner/aged_rows.hpp"

namespace opmux::cli {
namespace {

/// "y=f32 x=f32" for the types "f32,f32"; nullopt if they do not say which optional tensors the
/// calls pass.
std::optional<std::string> tensors_of(const Operator& op, std::string_view dtypes) {
  std::vector<std::string_view> types;
  while (!dtypes.empty()) types.push_back(base::take_until(dtypes, ','));
  std::vector<ArgumentInfo> all, required;
  for (ArgumentInfo& info : op.arguments()) {
    if (info.type != ArgTag::tensor) continue;
    if (!info.optional) required.push_back(info);
    all.push_back(std::move(info));
  }
  const std::vector<ArgumentInfo>& passed = types.size() == all.size() ? all : required;
  if (types.size() != passed.size()) return {};
  std::string text;
  for (size_t i = 0; i < types.size(); ++i)
    text += base::concat(i == 0 ? "" : " ", passed[i].name, "=", types[i]);
  return text;
}

/// Nullopt if calls like these cannot be made here.
std::optional<AskedCell> asked(const tuner::AgedRows& rows, const Runtime& runtime) {
  const Result<Operator> op = runtime.op(rows.op);
  if (!op || rows.cell.captured) return {};
  const std::optional<std::string> tensors = tensors_of(*op, rows.cell.dtypes);
  if (!tensors) return {};
  AskedCell cell = cell_of(*op, *tensors, rows.cell.dims, rows.range);
  const auto plan = tuner::CellPlan::make(*op, cell.spec, rows.cell.threads);
  if (!plan || plan->cell() != rows.cell) return {};
  return cell;
}

}  // namespace

FoundCells aged_cells(const Runtime& runtime, const tune::Machine& here, uint32_t threads) {
  std::vector<std::string> paths;
  for (const TuningBundle& bundle : runtime.tuning().bundles()) {
    if (bundle.problem.empty()) paths.push_back(bundle.path);
  }
  FoundCells aged;
  aged.threads = threads;
  size_t other_threads = 0, unknown = 0;
  for (const tuner::AgedRows& rows : tuner::aged_rows(paths, here)) {
    if (aged.threads == 0) aged.threads = rows.cell.threads;
    if (rows.cell.threads != aged.threads) {
      ++other_threads;
    } else if (std::optional<AskedCell> cell = asked(rows, runtime)) {
      aged.cells.push_back(std::move(*cell));
    } else {
      ++unknown;
    }
  }
  aged.leave_out(other_threads, base::concat("not with ", aged.threads, " threads"));
  aged.leave_out(unknown, "that cannot be measured here");
  return aged;
}

}  // namespace opmux::cli
