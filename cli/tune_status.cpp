#include "cli/tune_status.hpp"

#include <iostream>
#include <memory>

#include "base/text.hpp"
#include "cli/padded.hpp"

namespace opmux::cli {
namespace {

std::string words_of(const TuningBundle& bundle) {
  if (!bundle.problem.empty()) return base::concat("refused: ", bundle.problem);
  const TuningCounts& counts = bundle.counts;
  std::string text =
      base::concat(bundle.rows, bundle.rows == 1 ? " row, " : " rows, ", counts.used, " used");
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += base::concat(", ", count, " ", what);
  };
  if (counts.aged != 0) text += base::concat(" (", counts.aged, " aged)");
  add(counts.foreign, "of other machines");
  add(counts.stale, "of other builds or schemas");
  add(counts.damaged, "damaged");
  if (!bundle.signer.empty()) text += base::concat("; signed by ", bundle.signer);
  return text;
}

struct StatusOptions {
  bool json = false;
};

int show_status(const StatusOptions& options) {
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  runtime->tuning().check();
  const std::vector<TuningBundle> bundles = runtime->tuning().bundles();
  bool wrong = false;
  size_t width = 0;
  for (const TuningBundle& bundle : bundles) {
    wrong |= !bundle.problem.empty() || bundle.counts.damaged != 0;
    width = std::max(width, bundle.found_in.size());
  }
  if (options.json) {
    std::cout << to_json(bundles) << "\n";
  } else {
    for (const TuningBundle& bundle : bundles) {
      std::cout << padded(bundle.found_in, width) << "  " << bundle.path << ": " << words_of(bundle)
                << "\n";
    }
    if (bundles.empty()) std::cout << "no bundle was found\n";
  }
  return wrong ? kFound : kFine;
}

}  // namespace

void add_tune_status(CLI::App& tune, Action& action) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = tune.add_subcommand(
      "status", "List the bundles that programs here find, and how many of their rows hold");
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/tuning.json");
  command->callback([options, &action] { action = [options] { return show_status(*options); }; });
}

}  // namespace opmux::cli
