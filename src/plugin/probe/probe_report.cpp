#include "plugin/probe/probe_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <utility>
#include <vector>

#include "base/line_records.hpp"
#include "base/text.hpp"
#include "plugin/probe/probe.hpp"

namespace opmux::plugin {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 12> kSignals{{{SIGSEGV, "SIGSEGV"},
                                                                     {SIGBUS, "SIGBUS"},
                                                                     {SIGILL, "SIGILL"},
                                                                     {SIGFPE, "SIGFPE"},
                                                                     {SIGABRT, "SIGABRT"},
                                                                     {SIGTRAP, "SIGTRAP"},
                                                                     {SIGKILL, "SIGKILL"},
                                                                     {SIGTERM, "SIGTERM"},
                                                                     {SIGSYS, "SIGSYS"},
                                                                     {SIGXFSZ, "SIGXFSZ"},
                                                                     {SIGXCPU, "SIGXCPU"},
                                                                     {SIGALRM, "SIGALRM"}}};

std::string signal_name(int number) {
  const auto* known = std::ranges::find(kSignals, number, &std::pair<int, std::string_view>::first);
  return known != kSignals.end() ? std::string(known->second) : base::concat("signal ", number);
}

std::string hex(uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

constexpr std::string_view kFirstStage = "start";

/// The lines of a report before its verdict.
struct Progress {
  std::string stage{kFirstStage};
  std::string forbidden;
  bool crashed = false, memory = false;
  int signal = 0;
  uint64_t address = 0;
  std::vector<std::string> missing;
  std::string nonce;  ///< of the line before the verdict
  std::string_view verdict;
};

/// Drops all characters that the probe program never writes, because the plugin may have written to
/// the report.
std::string plain(std::string_view text) {
  std::string kept(text.substr(0, 32));
  std::erase_if(kept,
                [](char c) { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_'; });
  return kept;
}

void read_missing(base::RecordFields& fields, Progress& progress) {
  // The plugin runs after this stage, so lines of later stages may come from the plugin.
  if (progress.stage != kFirstStage || !progress.missing.empty()) return;
  while (fields.left() > 0) progress.missing.push_back(plain(fields.text()));
}

Progress read(std::string_view report) {
  Progress progress;
  while (!report.empty() && !report.starts_with("opmux-verdict ")) {
    base::RecordFields fields(base::take_until(report, '\n'));
    const std::string what = fields.text();
    progress.nonce = what == "nonce" ? fields.text() : std::string();
    if (what == "missing") read_missing(fields, progress);
    if (what == "at") progress.stage = plain(fields.text());
    if (what == "forbidden") progress.forbidden = plain(fields.text());
    if (what == "memory") progress.memory = true;
    if (what != "crash") continue;
    progress.crashed = true;
    progress.signal = fields.integer<int>();
    progress.address = fields.count();
  }
  progress.verdict = report;
  return progress;
}

ProbeResult verdict_of(std::string_view code, std::string text, const Progress& progress) {
  return {std::string(code), std::move(text), progress.stage, 0, 0, {}, progress.missing};
}

ProbeResult crash(int signal, const Progress& progress) {
  const bool about = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
  const std::string where =
      about && progress.crashed ? base::concat(" at address ", hex(progress.address)) : "";
  ProbeResult verdict = verdict_of(
      "probe.crash", base::concat(signal_name(signal), where, " in ", progress.stage), progress);
  verdict.signal = signal;
  verdict.address = about ? progress.address : 0;
  return verdict;
}

ProbeResult hang(const Progress& progress) {
  return verdict_of(
      "probe.hang",
      base::concat("it did not finish ", progress.stage, " within ", protocol::kMostSeconds, " s"),
      progress);
}

ProbeResult memory(const Progress& progress) {
  return verdict_of("probe.memory",
                    base::concat("it allocated more than ", protocol::kMostData >> 20,
                                 " MiB, or shared more than ", protocol::kMostShared >> 20,
                                 " MiB, in ", progress.stage),
                    progress);
}

ProbeResult forbidden(std::string_view call, const Progress& progress) {
  return verdict_of(
      "probe.forbidden",
      base::concat("it called ", call, " in ", progress.stage,
                   ", but plugins must not use the network, start processes or affect "
                   "other processes there"),
      progress);
}

ProbeResult forged(const Progress& progress) {
  return verdict_of("probe.forged",
                    base::concat("the report of ", progress.stage,
                                 " contains a verdict that the probe did not write"),
                    progress);
}

ProbeResult many_threads(const Progress& progress) {
  return verdict_of(
      "probe.threads",
      base::concat("it started more than ", protocol::kMostThreads, " threads in ", progress.stage),
      progress);
}

ProbeResult unconfined(const Progress& progress) {
  const std::string why =
      progress.missing.empty()
          ? "the system does not allow seccomp filters"
          : base::concat("the program requires every layer of confinement, and the system lacks ",
                         base::join(progress.missing, ", "));
  return verdict_of("probe.unconfined", "the probe cannot confine itself: " + why, progress);
}

ProbeResult by_exit(int status, const Progress& progress) {
  switch (status) {
    case protocol::kReportLost:
      return verdict_of(
          "probe.files",
          base::concat("it closed a file descriptor of the probe in ", progress.stage), progress);
    case protocol::kUnconfined: return unconfined(progress);
    case protocol::kReported:
    case protocol::kMisused:
      return verdict_of("probe.verdict", "the probe's report cannot be read", progress);
    default:
      return verdict_of(
          "probe.exit",
          base::concat("it ended the process with status ", status, " in ", progress.stage),
          progress);
  }
}

}  // namespace

ProbeResult judge(std::string_view report, const Ending& ending, std::string_view nonce) {
  using How = Ending::How;
  const Progress progress = read(report);
  const bool whole = ending.how == How::unknown ||
                     (ending.how == How::exited && ending.number == protocol::kReported);
  if (whole) {
    if (Result<ProbeResult> verdict = parse_verdict(progress.verdict)) {
      if (nonce.empty() || progress.nonce != nonce) return forged(progress);
      verdict->missing = progress.missing;
      return *std::move(verdict);
    }
  }
  if (progress.memory) return memory(progress);
  if (!progress.forbidden.empty()) return forbidden(progress.forbidden, progress);
  if (progress.crashed && progress.signal == SIGXCPU) return hang(progress);
  if (progress.crashed) return crash(progress.signal, progress);
  switch (ending.how) {
    case How::hung:
      if (ending.many_threads) return many_threads(progress);
      return ending.memory_full ? memory(progress) : hang(progress);
    case How::exited: return by_exit(ending.number, progress);
    case How::signalled:
      if (ending.number == SIGSYS) return forbidden("a forbidden function", progress);
      return ending.number == SIGXCPU ? hang(progress) : crash(ending.number, progress);
    case How::unknown: break;
  }
  return verdict_of("probe.verdict", "the probe ended without a verdict", progress);
}

}  // namespace opmux::plugin
