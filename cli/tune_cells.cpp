#include "cli/tune_cells.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "replay/recording.hpp"
#include "tuner/measure/recorded_call.hpp"

namespace opmux::cli {
namespace {

constexpr const char* kOp = "--op";
constexpr const char* kCalls = "--calls";
constexpr const char* kOver = "--over";

Status wrong(const std::string& message) { return {Code::invalid_argument, "tune.cell", message}; }

}  // namespace

void FoundCells::leave_out(size_t count, std::string_view why) {
  if (count == 0) return;
  note += base::concat(note.empty() ? "" : "; ", count, count == 1 ? " cell " : " cells ", why);
}

AskedCell cell_of(const Operator& op, std::string_view tensors,
                  std::vector<std::pair<std::string, int64_t>> dims, const tune::Range& range) {
  AskedCell cell;
  cell.spec.op = op.name();
  std::vector<std::string>& words = cell.words;
  words = {kOp, cell.spec.op};
  const std::vector<ArgumentInfo> infos = op.arguments();
  while (!tensors.empty()) {
    const std::string tensor(base::take_until(tensors, ' '));
    cell.spec.dtypes.push_back(tensor);
    words.insert(words.end(), {"--dtype", tensor});
    const std::string name = tensor.substr(0, tensor.find('='));
    const auto info = std::ranges::find(infos, name, &ArgumentInfo::name);
    if (info == infos.end() || !info->optional) continue;
    cell.spec.with.push_back(name);
    words.insert(words.end(), {"--with", name});
  }
  cell.spec.dims = std::move(dims);
  if (!range.dim.empty()) cell.spec.over = range;
  for (const auto& [name, size] : cell.spec.dims)
    words.insert(words.end(), {"--dim", base::concat(name, "=", size)});
  return cell;
}

void CellOptions::add_to(CLI::App& command) {
  command_ = &command;
  const auto add = [&](const char* name, std::vector<std::string>& words, const char* type,
                       const char* what) {
    command.add_option(name, words, what)->type_name(type)->allow_extra_args(false);
  };
  add("--op", ops_, "OP", "measure calls of this operator (may be repeated)");
  add("--dtype", dtypes_, "DTYPE",
      "type of its floating-point tensors, or NAME=DTYPE for one tensor (may be repeated)");
  add("--dim", dims_, "NAME=N", "sizes such as N=2048,K=2048 (may be repeated)");
  add("--over", overs_, "NAME=A..B", "a dimension that varies, and its first and last size");
  add("--with", with_, "NAME", "pass this optional tensor (may be repeated)");
  add("--calls", calls_, "FILE", "measure a call that was recorded (may be repeated)");
}

Status CellOptions::read_word(const std::string& option, const std::string& word,
                              std::vector<AskedCell>& cells) const {
  if (option == kOp) {
    cells.emplace_back().spec.op = word;
  } else if (cells.empty() || cells.back().words.front() == kCalls) {
    return wrong(base::concat(option, " needs --op before it"));
  }
  AskedCell& cell = cells.back();
  if (option != kOver) cell.words.insert(cell.words.end(), {option, word});
  if (option == "--dtype") cell.spec.dtypes.push_back(word);
  if (option == "--with") cell.spec.with.push_back(word);
  if (option == "--dim") {
    auto dims = tuner::read_dims(word);
    if (!dims) return dims.error();
    cell.spec.dims.insert(cell.spec.dims.end(), dims->begin(), dims->end());
  }
  if (option == kOver) {
    if (cell.spec.over) return wrong("--over can be given once for each --op");
    const auto range = tuner::read_over(word);
    if (!range) return range.error();
    cell.spec.over = *range;
  }
  return {};
}

Status CellOptions::read_calls(const Runtime& runtime, const std::string& path,
                               std::vector<AskedCell>& cells) const {
  const Result<replay::Recording> recording = replay::read_file(path);
  if (!recording) return recording.error();
  const Result<Operator> op = runtime.op(recording->op);
  if (!op) return op.error();
  Result<tuner::CellSpec> spec = tuner::spec_of(*recording, *op);
  if (!spec) return wrong(base::concat(path, ": ", spec.error().message()));
  cells.push_back({std::move(*spec), {kCalls, path}});
  return {};
}

Result<std::vector<AskedCell>> CellOptions::read(const Runtime& runtime, bool some) const {
  const std::map<std::string, const std::vector<std::string>*> given{
      {kOp, &ops_},     {"--dtype", &dtypes_}, {"--dim", &dims_},
      {kOver, &overs_}, {"--with", &with_},    {kCalls, &calls_}};
  std::vector<AskedCell> cells;
  std::map<std::string, size_t> seen;
  // The order of the command line says which --op an option belongs to.
  for (const CLI::Option* const option : command_->parse_order()) {
    const std::string name = option->get_name();
    const auto words = given.find(name);
    const size_t at = seen[name]++;
    if (words == given.end() || at >= words->second->size()) continue;
    const std::string& word = (*words->second)[at];
    const Status status =
        name == kCalls ? read_calls(runtime, word, cells) : read_word(name, word, cells);
    if (!status.ok()) return status;
  }
  if (cells.empty() && some)
    return wrong(
        "give operators to measure by --op, recorded calls by --calls, or a process by --from-pid");
  return cells;
}

}  // namespace opmux::cli
