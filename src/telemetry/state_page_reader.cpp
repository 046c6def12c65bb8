#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/store_folder.hpp"
#include "base/text.hpp"
#include "telemetry/process_mark.hpp"
#include "telemetry/state_page_file.hpp"

namespace opmux {
namespace {

using telemetry::StatePage;

/// Reads a status file and determines whether its process is alive.
Result<StatePage> read_page(const std::string& path, const std::string& own_namespace) {
  auto found = telemetry::read_state_page_file(path);
  if (!found) return found.error();
  auto page = telemetry::parse_state_page(found->text);
  if (!page) {
    return Status(page.error().code(), std::string(page.error().reason()),
                  base::concat(path, ": ", page.error().message()));
  }
  ProcessState& process = page->process;
  process.elsewhere = page->mark.pid_namespace != own_namespace;
  // The lock alone is not enough: a child that was forked while the parent wrote the file may still
  // hold it after the parent was killed.
  process.alive = found->held && (process.elsewhere ||
                                  telemetry::start_ticks_of(process.pid) == page->mark.start_ticks);
  return page;
}

std::vector<StatePage> read_pages(const std::string& folder) {
  std::vector<StatePage> pages;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  const std::string own_namespace = telemetry::own_mark().pid_namespace;
  while (const dirent* entry = entries == nullptr ? nullptr : ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(telemetry::kStatePagePrefix) || name.ends_with(telemetry::kNewStatePage))
      continue;
    auto page = read_page(base::concat(folder, "/", name), own_namespace);
    if (page) pages.push_back(*std::move(page));
  }
  return pages;
}

/// Merges the status files of each process into one entry with all of its runtimes.
std::vector<ProcessState> join_by_process(std::vector<StatePage> pages) {
  std::map<std::tuple<int64_t, std::string, uint64_t>, ProcessState> by_process;
  for (StatePage& page : pages) {
    auto& into = by_process[{page.process.pid, page.mark.pid_namespace, page.mark.start_ticks}];
    std::vector<RuntimeState> runtimes = std::move(into.runtimes);
    std::ranges::move(page.process.runtimes, std::back_inserter(runtimes));
    std::ranges::sort(runtimes, {}, &RuntimeState::number);
    into = std::move(page.process);
    into.runtimes = std::move(runtimes);
  }
  std::vector<ProcessState> all;
  for (auto& [key, process] : by_process) all.push_back(std::move(process));
  return all;
}

Status no_page(int64_t pid, const std::string& folder, bool ended) {
  const bool there = ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
  if (ended || pid <= 0 || !there) {
    return {Code::not_found, "state_page.process",
            base::concat("there is no process ", pid,
                         ended ? "; it ended and left a status file" : "")};
  }
  return {Code::not_found, "state_page.none",
          base::concat("process ", pid, " has no status file in ", folder,
                       "; start it with OPMUX_STATE_PAGE=1, and run this command as the same user "
                       "with the same OPMUX_STATE_DIR and XDG_RUNTIME_DIR")};
}

}  // namespace

uint64_t RuntimeState::calls(std::string_view implementation) const {
  for (const OperatorPageState& op : operators) {
    const auto at =
        std::ranges::find(op.implementations, implementation, &ImplementationPageState::id);
    if (at != op.implementations.end()) return at->calls;
  }
  return 0;
}

std::string state_page_folder(const std::string& state_dir) {
  const char* const said = state_dir.empty() ? secure_getenv("OPMUX_STATE_DIR") : nullptr;
  return base::run_folder(said == nullptr ? state_dir : said);
}

Result<ProcessState> open_state_page(const std::string& path) {
  auto page = read_page(path, telemetry::own_mark().pid_namespace);
  if (!page) return page.error();
  return std::move(page->process);
}

Result<ProcessState> process_state(int64_t pid, const std::string& state_dir) {
  const std::string folder = state_page_folder(state_dir);
  bool ended = false;
  for (ProcessState& process : join_by_process(read_pages(folder))) {
    if (process.pid != pid || process.elsewhere) continue;
    if (process.alive) return std::move(process);
    ended = true;
  }
  return no_page(pid, folder, ended);
}

std::vector<ProcessState> process_states(const std::string& state_dir) {
  std::vector<ProcessState> all = join_by_process(read_pages(state_page_folder(state_dir)));
  std::erase_if(all, [](const ProcessState& process) { return !process.alive; });
  return all;
}

}  // namespace opmux
