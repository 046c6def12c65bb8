#include "cli/check_file.hpp"

#include "base/text.hpp"
#include "plugin/probe/probe.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::cli {
namespace {

using plugin::check_of;
using plugin::CheckedFile;
using plugin::Manifest;
using plugin::ProbeResult;
using plugin::TrustSettings;

/// A step with the warnings of one kind of check.
CheckStep step_of(std::string_view name, std::string_view check, const CheckedFile& file) {
  CheckStep step{std::string(name), Mark::passed, "", ""};
  for (const Status& warning : file.warnings) {
    if ((check_of(warning.reason()) == "path") != (check == "path")) continue;
    step.mark = Mark::warning;
    if (step.code.empty()) step.code = warning.reason();
    step.text += base::concat(step.text.empty() ? "" : "\n", warning.message());
  }
  return step;
}

std::string facts_of(const CheckedFile& file) {
  const plugin::ElfFacts& elf = file.elf;
  return base::concat("build id ", elf.build_id.empty() ? "none" : elf.build_id,
                      elf.needed.empty() ? "" : ", needs ", base::join(elf.needed, " "),
                      elf.run_path.empty() ? "" : ", run path ", base::join(elf.run_path, " "));
}

void add_file_steps(const CheckedFile& file, CheckReport& report) {
  report.build_id = file.elf.build_id;
  report.steps.push_back(step_of("path", "path", file));
  CheckStep step = step_of("file", "library", file);
  step.text = step.text.empty() ? facts_of(file) : base::concat(step.text, "\n", facts_of(file));
  report.steps.push_back(std::move(step));
}

void take(const Manifest& manifest, CheckReport& report) {
  report.name = manifest.name;
  report.version = manifest.version;
  report.vendor = manifest.vendor;
  if (!manifest.build_id.empty()) report.build_id = manifest.build_id;
  report.points = manifest.points;
  for (const std::string& schema : manifest.operators) {
    report.operators.push_back(schema.substr(0, schema.find('(')));
  }
}

CheckStep step_of(const ProbeResult& verdict) {
  if (verdict.ok()) return {"probe", Mark::passed, "", "opened, queried, initialised, tested"};
  // Without the probe program nothing is known yet; the later steps examine the plugin.
  const Mark mark = verdict.code == "probe.missing" ? Mark::skipped : Mark::failed;
  return {"probe", mark, verdict.code, verdict.text};
}

}  // namespace

bool look_at_file(const std::string& real_path, CheckReport& report) {
  TrustSettings settings;
  settings.paths = TrustSettings::Paths::reported;
  const Result<CheckedFile> file = plugin::check_file(real_path, settings);
  if (!file) {
    const std::string check(check_of(file.error().reason()));
    report.steps.push_back({check == "path" ? "path" : "file", Mark::failed,
                            std::string(file.error().reason()),
                            std::string(file.error().message())});
    return false;
  }
  add_file_steps(*file, report);
  const ProbeResult verdict = plugin::probe(plugin::probe_program(), plugin::library_file(*file));
  if (verdict.ok()) take(verdict.manifest, report);
  report.steps.push_back(step_of(verdict));
  return true;
}

}  // namespace opmux::cli
