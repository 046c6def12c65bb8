#include <algorithm>
#include <ctime>
#include <iostream>
#include <memory>

#include <opmux/runtime.hpp>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/padded.hpp"

namespace opmux::cli {
namespace {

struct QuarantineOptions {
  std::string id;
  bool json = false, all = false;
};

/// A runtime that evaluates crash journals as the next start of a program would.
std::optional<Runtime> make_judging_runtime() {
  Options options;
  options.state.crash_journal = CrashJournal::on;
  Result<Runtime> runtime = Runtime::create(options);
  if (runtime) return std::move(*runtime);
  wrong_use(runtime.error().message());
  return {};
}

std::string time_text(int64_t seconds) {
  const time_t time = seconds;
  struct tm parts{};
  char text[32];
  ::gmtime_r(&time, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

void print(const Quarantine& quarantine) {
  size_t width = 0;
  for (const QuarantineEntry& entry : quarantine.entries) {
    width = std::max(width, entry.implementation.size());
  }
  for (const QuarantineEntry& entry : quarantine.entries) {
    std::cout << padded(entry.implementation, width + 2) << padded(entry.how, 9)
              << (entry.phase == "run" ? "" : "in " + entry.phase + " ") << "since "
              << time_text(entry.since) << ", until " << time_text(entry.expires) << ", build "
              << entry.build
              << (entry.deferred ? ", in a plugin that is not loaded yet"
                  : entry.here   ? ""
                                 : ", not registered here")
              << "\n";
  }
  for (const SuspectedEnd& end : quarantine.suspected) {
    std::cout << "suspected: process " << end.process << ", found killed " << time_text(end.found)
              << ", was inside " << base::join(end.implementations, ", ") << "\n";
  }
  if (quarantine.entries.empty()) std::cout << "nothing is quarantined\n";
}

int list(const QuarantineOptions& options) {
  const std::optional<Runtime> runtime = make_judging_runtime();
  if (!runtime) return kWrongUse;
  const Quarantine quarantine = runtime->health().quarantine();
  if (options.json) {
    std::cout << to_json(quarantine) << "\n";
  } else {
    print(quarantine);
  }
  return quarantine.entries.empty() ? kFine : kFound;
}

int clear(const QuarantineOptions& options) {
  if (options.id.empty() != options.all) {
    return wrong_use("name one implementation or give --all");
  }
  std::optional<Runtime> runtime = make_judging_runtime();
  if (!runtime) return kWrongUse;
  std::vector<std::string> known;
  for (const QuarantineEntry& entry : runtime->health().quarantine().entries) {
    known.push_back(entry.implementation);
  }
  const Result<size_t> cleared = runtime->health().clear_quarantine(options.id);
  if (!cleared) return wrong_use(cleared.error().message());
  if (*cleared == 0 && !options.all) {
    return wrong_use(base::concat("'", options.id, "' is neither quarantined nor suspected",
                                  base::suggestion(options.id, known)));
  }
  std::cout << "cleared " << (options.all ? "everything" : options.id)
            << "; running programs notice it after a restart\n";
  return kFine;
}

}  // namespace

void add_quarantine(CLI::App& app, Action& action) {
  auto options = std::make_shared<QuarantineOptions>();
  CLI::App* quarantine = app.add_subcommand(
      "quarantine", "Implementations that are disabled because processes crashed in them");
  quarantine->require_subcommand(1);
  CLI::App* listing = quarantine->add_subcommand(
      "list", "List quarantined and suspected implementations; exit code 1 if any is quarantined");
  listing->add_flag("--json", options->json,
                    "print JSON as described in docs/schemas/quarantine.json");
  listing->callback([options, &action] { action = [options] { return list(*options); }; });
  CLI::App* clearing =
      quarantine->add_subcommand("clear", "Lift the quarantine of an implementation");
  clearing->add_option("ID", options->id, "OPERATOR/PROVIDER.VARIANT, plugin:FILE or backend:NAME");
  clearing->add_flag("--all", options->all, "lift all quarantines and suspicions");
  clearing->callback([options, &action] { action = [options] { return clear(*options); }; });
}

}  // namespace opmux::cli
