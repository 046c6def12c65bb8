#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/system/files.hpp"
#include "base/system/machine_facts.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/padded.hpp"
#include "cli/tune_run.hpp"
#include "cli/tune_sign.hpp"
#include "cli/tune_status.hpp"
#include "tune/bundle.hpp"
#include "tune/bundle_file.hpp"
#include "tuner/bundle_writer.hpp"
#include "tuner/merge.hpp"
#include "tuner/rows_picture.hpp"
#include "tuner/tuning_text.hpp"

namespace opmux::cli {
namespace {

using tune::OperatorRows;
using tune::TuningRow;
using tune::TuningSet;

constexpr size_t kMostTuningBytes = size_t{256} << 20;

struct TuneOptions {
  std::vector<std::string> files;
  std::string output, op, picture, keyring;
};

bool is_bundle(std::string_view bytes) { return bytes.starts_with("OPMUXTUN"); }

Result<TuningSet> parse(std::string_view bytes) {
  if (!is_bundle(bytes)) return tuner::read_text(bytes);
  Result<tune::Bundle> bundle = tune::Bundle::open(std::as_bytes(std::span(bytes)));
  if (!bundle) return bundle.error();
  return bundle->read_all();
}

/// The rows of a bundle or of its text form; prints the error if the file cannot be read.
std::optional<TuningSet> load(const std::string& path) {
  const Result<std::string> bytes = base::read_given(path, kMostTuningBytes);
  if (!bytes) {
    wrong_use(bytes.error().message());
    return {};
  }
  Result<TuningSet> set = parse(*bytes);
  if (set) return std::move(*set);
  wrong_use(base::concat(path, ": ", set.error().message()));
  return {};
}

std::string validity_text(const tune::Machine& machine, const tune::Machine& here) {
  switch (validity_of(machine, here)) {
    case tune::Validity::current: return "this machine";
    case tune::Validity::aged: return "this machine, with another kernel or microcode";
    case tune::Validity::foreign: return "another machine";
  }
  return "";
}

void show_row(const TuningRow& row, size_t width) {
  std::cout << "    " << padded(tuner::text_of(row.range), 16) << " "
            << padded(row.implementation.id, width) << "  " << tuner::describe(row) << "; "
            << row.rounds << " rounds, " << rigor_name(row.rigor) << ", " << tuner::date_of(row.day)
            << "\n";
}

void show_operator(const OperatorRows& one) {
  size_t width = 0;
  for (const TuningRow& row : one.rows) width = std::max(width, row.implementation.id.size());
  const tune::Cell* cell = nullptr;
  for (const TuningRow& row : one.rows) {
    if (cell == nullptr || *cell != row.cell)
      std::cout << "  " << one.op << " " << text_of(row.cell) << "\n";
    cell = &row.cell;
    show_row(row, width);
  }
}

size_t row_count(const TuningSet& set) {
  size_t count = 0;
  for (const OperatorRows& one : set.operators) count += one.rows.size();
  return count;
}

std::string counted(size_t count, std::string_view what) {
  return base::concat(count, " ", what, count == 1 ? "" : "s");
}

/// "3 rows, 2 sections, 1 machine"
std::string contents_text(const TuningSet& set) {
  return base::concat(counted(row_count(set), "row"), ", ",
                      counted(set.operators.size(), "section"), ", ",
                      counted(set.machines.size(), "machine"));
}

/// Writes the rows as a picture in place of printing them.
int draw(const TuningSet& set, const TuneOptions& options) {
  const std::string picture = tuner::picture_of(set, options.op);
  if (picture.empty())
    return wrong_use(base::concat(options.files[0], " has no rows over a dimension to draw"));
  if (!base::replace_file(options.picture, picture, 0644))
    return wrong_use(base::concat("cannot write ", options.picture, ": ", std::strerror(errno)));
  std::cout << "wrote " << options.picture << "\n";
  return kFine;
}

int show(const TuneOptions& options) {
  const std::optional<TuningSet> set = load(options.files[0]);
  if (!set) return kWrongUse;
  const auto is_wanted = [&](const OperatorRows& one) {
    return options.op.empty() || one.op == options.op;
  };
  if (!options.op.empty() && std::ranges::none_of(set->operators, is_wanted))
    return wrong_use(base::concat(options.files[0], " has no rows of '", options.op, "'"));
  if (!options.picture.empty()) return draw(*set, options);
  const tune::Machine here = tune::describe_machine(base::read_machine_facts());
  for (size_t machine = 0; machine < set->machines.size(); ++machine) {
    std::cout << set->machines[machine].hard << "\n"
              << "  " << validity_text(set->machines[machine], here) << "; "
              << set->machines[machine].soft << "\n";
    for (const OperatorRows& one : set->operators) {
      if (one.machine == machine && is_wanted(one)) show_operator(one);
    }
  }
  return kFine;
}

int export_text(const TuneOptions& options) {
  const std::optional<TuningSet> set = load(options.files[0]);
  if (!set) return kWrongUse;
  std::cout << tuner::text_of(*set);
  return kFine;
}

int merge(const TuneOptions& options) {
  std::vector<TuningSet> sets;
  for (const std::string& path : options.files) {
    std::optional<TuningSet> set = load(path);
    if (!set) return kWrongUse;
    sets.push_back(std::move(*set));
  }
  const Result<TuningSet> merged = tuner::merge(sets);
  if (!merged) return wrong_use(merged.error().message());
  const Result<std::string> bytes = tuner::write_bundle(*merged);
  if (!bytes) return wrong_use(bytes.error().message());
  if (!base::replace_file(options.output, *bytes, 0644))
    return wrong_use(base::concat("cannot write ", options.output, ": ", std::strerror(errno)));
  std::cout << options.output << ": " << contents_text(*merged) << "\n";
  return kFine;
}

int diff(const TuneOptions& options) {
  const std::optional<TuningSet> before = load(options.files[0]), after = load(options.files[1]);
  if (!before || !after) return kWrongUse;
  const std::vector<tuner::RowChange> changes = tuner::compare(*before, *after);
  const std::string* machine = nullptr;
  for (const tuner::RowChange& change : changes) {
    if (machine == nullptr || *machine != change.machine) std::cout << change.machine << "\n";
    machine = &change.machine;
    using Kind = tuner::RowChange::Kind;
    const TuningRow& row = change.kind == Kind::removed ? change.before : change.after;
    std::cout << "  " << change.op << " " << text_of(row.cell) << " " << tuner::text_of(row.range)
              << " " << row.implementation.id << ": ";
    if (change.kind == Kind::added) {
      std::cout << "new, " << tuner::describe(change.after) << "\n";
    } else if (change.kind == Kind::removed) {
      std::cout << "removed, was " << tuner::describe(change.before) << "\n";
    } else {
      std::cout << tuner::describe(change.before) << " -> " << tuner::describe(change.after)
                << "\n";
    }
  }
  if (changes.empty()) std::cout << "the rows are the same\n";
  return changes.empty() ? kFine : kFound;
}

int verify(const TuneOptions& options) {
  const std::optional<TuningSet> set = load(options.files[0]);
  if (!set) return kWrongUse;
  const tune::Machine here = tune::describe_machine(base::read_machine_facts());
  std::map<tune::Validity, size_t> rows;
  for (const OperatorRows& one : set->operators)
    rows[validity_of(set->machines[one.machine], here)] += one.rows.size();
  std::cout << options.files[0] << ": " << contents_text(*set) << "; "
            << rows[tune::Validity::current] << " rows hold here, " << rows[tune::Validity::aged]
            << " are aged, " << rows[tune::Validity::foreign] << " are of other machines\n";
  if (options.keyring.empty()) return kFine;
  const Result<tune::BundleFile> opened = tune::BundleFile::open(options.files[0]);
  if (!opened) return wrong_use(base::concat(options.files[0], ": only a bundle can be signed"));
  return verify_signature(options.files[0], opened->bundle().digest(), options.keyring);
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* tune = app.add_subcommand(
      "tune", "Measure, read, merge and compare speeds; FILE is a bundle or its text form");
  tune->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int files, auto run) {
    CLI::App* command = tune->add_subcommand(name, what);
    CLI::Option* given = command->add_option("FILE", options->files)->required();
    if (files > 0) given->expected(files);
    command->callback(
        [options, &action, run] { action = [options, run] { return run(*options); }; });
    return command;
  };
#ifdef OPMUX_TUNE_RUN
  add_tune_run(*tune, action);
#endif
  add_tune_status(*tune, action);
  CLI::App* const shown = add("show", "Print the rows with their results in words", 1, show);
  shown->add_option("--op", options->op, "only the rows of this operator");
  shown
      ->add_option("--picture", options->picture,
                   "draw the speeds over the varying dimension into this SVG file instead")
      ->type_name("FILE");
  add("export", "Print the rows as a text for reviews", 1, export_text);
  add("merge", "Pool the rows of several hosts into one bundle", 0, merge)
      ->add_option("--output", options->output, "the bundle to write")
      ->required();
  add("diff", "Compare the rows of two files; exit code 1 if they differ", 2, diff);
  add("verify", "Check every digest and row, and count the rows that hold on this machine", 1,
      verify)
      ->add_option("--keyring", options->keyring,
                   "also verify the signature with the public keys in this folder")
      ->type_name("DIR");
  add_tune_sign(*tune, action);
}

}  // namespace opmux::cli
