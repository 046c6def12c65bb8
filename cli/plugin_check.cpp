#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/text.hpp"
#include "cli/check_file.hpp"
#include "cli/check_worker.hpp"
#include "cli/plugin_command.hpp"

namespace opmux::cli {
namespace {

namespace fs = std::filesystem;

struct CheckOptions {
  std::string file, junit;
  WorkerOrder order;
  int64_t timeout = 120;
  bool json = false;

  std::chrono::seconds deadline() const { return std::chrono::seconds(timeout); }
};

/// A private temporary folder that contains only the plugin, under its name. A file in a folder
/// that others can write to is copied instead of linked, because a runtime would refuse its path.
class Bench {
 public:
  Bench(const fs::path& file, bool copied) {
    std::string name = fs::temp_directory_path() / "opmux-check-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw fs::filesystem_error("cannot create a folder", name,
                                 std::error_code(errno, std::generic_category()));
    }
    folder_ = name;
    if (copied) {
      fs::copy_file(file, folder_ / file.filename());
      fs::permissions(folder_ / file.filename(), fs::perms::owner_all);
    } else {
      fs::create_symlink(file, folder_ / file.filename());
    }
  }
  ~Bench() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  std::string path() const { return folder_; }

 private:
  fs::path folder_;
};

conformance::Finding finding_of(const Json& from, const std::string& id) {
  return {.implementation = id,
          .kind = from.at("kind"),
          .seed = from.at("seed"),
          .number = from.at("case"),
          .arguments = from.at("arguments"),
          .detail = from.at("detail")};
}

void take_report(const Json& from, CheckedImplementation& one) {
  conformance::ImplementationReport& report = one.report;
  report.cases = from.at("cases");
  report.refused = from.at("refused");
  report.wrong = from.at("wrong");
  report.chosen = from.at("chosen");
  report.instead = from.at("instead");
  for (const Json& finding : from.at("findings")) {
    report.findings.push_back(finding_of(finding, one.id));
  }
  one.mark = report.passed() ? Mark::passed : Mark::failed;
  one.never_chosen = report.cases > 0 && report.chosen == 0 && !report.instead.empty();
}

void verify_one(const CheckOptions& options, const WorkerOrder& order, CheckedImplementation& one) {
  WorkerOrder mine = order;
  mine.id = one.id;
  const WorkerAnswer answer = ask_worker(mine, options.deadline());
  one.report.id = one.id;
  if (!answer.code.empty()) {
    one.mark = Mark::failed;
    one.code = answer.code;
    one.text = answer.text;
    return;
  }
  if (const std::string note = answer.found.value("note", ""); !note.empty()) {
    one.mark = Mark::skipped;
    one.code = "not_verified";
    one.text = note;
    return;
  }
  take_report(answer.found, one);
}

CheckedImplementation announced(const Json& from) {
  CheckedImplementation one;
  one.id = from.at("id");
  one.priority = from.at("priority");
  if (from.at("available")) return one;
  one.mark = Mark::skipped;
  one.code = "not_available";
  one.text = from.at("reason");
  one.report.available = false;
  return one;
}

/// Loads the plugin in a worker and records its backends and implementations.
CheckStep load(const CheckOptions& options, const WorkerOrder& order, CheckReport& report) {
  const WorkerAnswer answer = ask_worker(order, options.deadline());
  if (!answer.code.empty()) return {"load", Mark::failed, answer.code, answer.text};
  const Json& found = answer.found;
  if (report.name.empty()) report.name = found.at("name");
  report.backends = found.at("backends").get<std::vector<std::string>>();
  for (const Json& one : found.at("implementations")) {
    const std::string op = one.at("op");
    const auto known = std::ranges::find(report.operators, op);
    if (op.find('.') != op.npos && known == report.operators.end()) report.operators.push_back(op);
    report.implementations.push_back(announced(one));
  }
  const std::string code = found.at("code"), reason = found.at("reason");
  if (!found.at("loaded")) return {"load", Mark::failed, code, reason};
  const std::string brings =
      base::concat(report.name, " ", report.version, report.version.empty() ? "" : " ", "with ",
                   base::join(report.backends, ", "));
  if (code.empty()) return {"load", Mark::passed, "", brings};
  return {"load", Mark::failed, code, base::concat(reason, "\n", brings)};
}

CheckReport look_at(const CheckOptions& options, const fs::path& file) {
  CheckReport report;
  report.file = options.file;
  if (!look_at_file(file, report)) return report;
  const Bench bench(file, report.steps.front().mark == Mark::warning);
  WorkerOrder order = options.order;
  order.folder = bench.path();
  order.id.clear();
  report.steps.push_back(load(options, order, report));
  std::erase_if(report.implementations, [&](const CheckedImplementation& one) {
    return !options.order.id.empty() && one.id != options.order.id;
  });
  for (CheckedImplementation& one : report.implementations) {
    if (one.mark == Mark::passed) verify_one(options, order, one);
  }
  return report;
}

int check(const CheckOptions& options) {
  if (!options.order.folder.empty()) return work(options.order);
  std::error_code unknown;
  const fs::path file = fs::canonical(options.file, unknown);
  if (unknown || !fs::is_regular_file(file)) {
    return wrong_use(base::concat("there is no file '", options.file, "'"));
  }
  const CheckReport report = look_at(options, file);
  if (!options.order.id.empty() && report.implementations.empty()) {
    std::cout << to_text(report);
    return wrong_use(base::concat("the plugin has no implementation '", options.order.id, "'"));
  }
  if (!options.junit.empty()) {
    std::ofstream stream(options.junit);
    if (!(stream << to_junit(report) << std::flush)) {
      return wrong_use(base::concat("cannot write '", options.junit, "'"));
    }
  }
  std::cout << (options.json ? to_json(report).dump() + "\n" : to_text(report));
  return report.passed() ? kFine : kFound;
}

}  // namespace

void add_plugin_check(CLI::App& group, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = group.add_subcommand(
      "check", "Check a plugin's file and compare its kernels with the reference");
  CLI::Option* file = command->add_option("FILE", options->file, "the shared library");
  command->add_option("--impl", options->order.id, "only this implementation")->type_name("ID");
  command->add_option("--cases", options->order.cases, "calls per implementation, default 1000")
      ->type_name("N");
  command->add_option("--seed", options->order.seed, "seed of the generated calls")->type_name("N");
  command
      ->add_option("--timeout", options->timeout,
                   "time limit per implementation in seconds, default 120")
      ->check(CLI::Range(1, 86400))
      ->type_name("S");
  command->add_flag("--json", options->json,
                    "print JSON as described in docs/schemas/plugin_check.json");
  command->add_option("--junit", options->junit, "also write JUnit XML to this file")
      ->type_name("FILE");
  CLI::Option* worker = command->add_option("--worker", options->order.folder)->group("");
  command->callback([options, file, worker, &action] {
    if (file->empty() && worker->empty()) throw CLI::RequiredError("FILE");
    action = [options] { return check(*options); };
  });
}

}  // namespace opmux::cli
