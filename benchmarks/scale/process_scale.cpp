#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "../world.hpp"
#include "scale.hpp"
#include "temporary_folder.hpp"

namespace opmux::bench {
namespace {

using test::TemporaryFolder;

void pause_briefly() {
  const timespec time{0, 1'000'000};
  nanosleep(&time, nullptr);
}

/// A signal to several processes. Waiting takes no processor time: with hundreds of processes,
/// looking again and again would be most of a measurement.
class Signal {
 public:
  void send() {
    sent_ = 1;
    ::syscall(SYS_futex, &sent_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  void wait() {
    while (sent_ == 0) ::syscall(SYS_futex, &sent_, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> sent_{0};
};

/// Messages between processes and their parent.
struct Board {
  Signal go, stop;
  std::atomic<int> ready, done;
};

/// Forked processes that share a Board.
class Processes {
 public:
  /// Each child runs `work(board)`, which returns when `stop` is set.
  Processes(int count, const std::function<void(Board&)>& work)
      : board_(static_cast<Board*>(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child < 0) throw std::runtime_error("cannot fork");
      if (child == 0) {
        work(*board_);
        ::_exit(0);
      }
      children_.push_back(child);
    }
  }
  ~Processes() {
    board_->stop.send();
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
    ::munmap(board_, sizeof(Board));
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  Board& board() { return *board_; }
  /// Waits until every process has increased a counter. Throws after a minute.
  void wait_for(const std::atomic<int>& counter) const {
    const double start = now_ns();
    while (counter < static_cast<int>(children_.size())) {
      if (now_ns() - start > 60e9) throw std::runtime_error("processes do not answer");
      pause_briefly();
    }
  }

 private:
  Board* board_;
  std::vector<pid_t> children_;
};

/// Seconds until `count` processes that start at the same time have created their runtimes.
double start_seconds(int count) {
  const TemporaryFolder folder;
  Processes processes(count, [&](Board& board) {
    ++board.ready;
    board.go.wait();
    Options options{.environment = {{}}, .backends = false};
    options.state.folder = folder.path();
    options.state.crash_journal = CrashJournal::on;
    const Runtime runtime = Runtime::create(options).value();
    const CrashJournalState journal = runtime.health().crash_journal();
    if (journal.on) ++board.done;
    if (!journal.on) std::fprintf(stderr, "no crash journal: %s\n", journal.problem.c_str());
    board.stop.wait();
  });
  processes.wait_for(processes.board().ready);
  const double start = now_ns();
  processes.board().go.send();
  processes.wait_for(processes.board().done);
  return (now_ns() - start) / 1e9;
}

void write_policy(const std::string& path, int rules, int number) {
  std::string text = "opmux: 1\nrules:\n";
  for (int i = 0; i < rules; ++i) {
    text += "  - {name: r" + std::to_string(i) +
            ", op: rms_norm, boost: [{impl: 'rms_norm/reference.*', add: " +
            std::to_string(number + 1) + "}]}\n";
  }
  test::write_file(path + ".new", text);
  std::filesystem::rename(path + ".new", path);
}

/// Seconds until a new policy file is in force in `count` processes.
double reload_seconds(int count, int rules) {
  const TemporaryFolder folder;
  const std::string path = folder.at("policy.yaml");
  write_policy(path, rules, 0);
  Processes processes(count, [&](Board& board) {
    Options options{.environment = {{}}, .backends = false};
    options.state.folder = folder.path();
    options.sources.config = path;
    Runtime runtime = Runtime::create(options).value();
    runtime.policy().on_change([&](const PolicyChange& change) {
      if (change.status.ok()) ++board.done;
    });
    ++board.ready;
    board.stop.wait();
  });
  processes.wait_for(processes.board().ready);
  const double start = now_ns();
  write_policy(path, rules, 1);
  processes.wait_for(processes.board().done);
  return (now_ns() - start) / 1e9;
}

double process_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// CPU milliseconds per second that this process takes while another one appends lines to a file.
double cost_of_lines(const std::string& path, int& lines) {
  constexpr double kSeconds = 2;
  const double start = now_ns();
  const pid_t writer = ::fork();
  if (writer == 0) {
    std::ofstream file(path);
    for (int i = 0;; ++i) {
      file << "line\n" << std::flush;
      if (i % 50 == 49) pause_briefly();
      if (now_ns() - start > kSeconds * 1e9) ::_exit(0);
    }
  }
  const double before = process_ms();
  ::waitpid(writer, nullptr, 0);
  const double took = process_ms() - before;
  lines = static_cast<int>(static_cast<double>(std::filesystem::file_size(path)) / 5 / kSeconds);
  return took / kSeconds;
}

}  // namespace

std::vector<Figure> starting_processes() {
  const double one = start_seconds(1), few = start_seconds(100), many = start_seconds(400);
  char note[80];
  std::snprintf(note, sizeof note, "grows as processes^%.2f", exponent(100, few, 400, many));
  return {{"start of 400 processes, beyond the first", many - one, 1.5, "s", false, note}};
}

std::vector<Figure> reloading_processes() {
  const double few = reload_seconds(50, 1000), many = reload_seconds(200, 1000);
  char note[80];
  std::snprintf(note, sizeof note, "grows as processes^%.2f", exponent(50, few, 200, many));
  return {{"1,000 rules in force in 200 processes", many, 2, "s", false, note}};
}

std::vector<Figure> foreign_files() {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.at("etc/opmux"));
  const std::string path = folder.at("etc/opmux/policy.yaml");
  write_policy(path, 1, 0);
  Options options{.environment = {{}}, .backends = false};
  options.state.folder = folder.at("state");
  options.sources.config = path;
  const Runtime runtime = Runtime::create(options).value();
  int lines = 0;
  const TemporaryFolder elsewhere;
  const double idle = cost_of_lines(elsewhere.at("app.log"), lines);
  const double above = cost_of_lines(folder.at("app.log"), lines) - idle;
  const double beside = cost_of_lines(folder.at("etc/opmux/app.log"), lines) - idle;
  char note[80];
  std::snprintf(note, sizeof note, "%d lines a second; %.2f ms/s without them", lines, idle);
  return {{"CPU for lines written in a folder above the policy", above, 0.2, "ms/s", false, note},
          {"CPU for lines written beside the policy", beside, 0.2, "ms/s", false, note}};
}

}  // namespace opmux::bench
