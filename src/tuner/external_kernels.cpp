#include "tuner/external_kernels.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Status failed(std::string_view what) { return {Code::failed, "tune.python", std::string(what)}; }

/// Both ends of a pipe; closed by the destructor unless they were taken.
struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  bool made() const { return ends[0] >= 0; }
  int take(int which) { return std::exchange(ends[which], -1); }

  int ends[2];
};

/// Reads "OPERATOR NAME BUILD".
ExternalKernel read_kernel(std::string_view rest) {
  ExternalKernel kernel;
  kernel.op = base::take_until(rest, ' ');
  kernel.build.id = base::take_until(rest, ' ');
  kernel.build.build = rest;
  return kernel;
}

bool is_valid(const ExternalKernel& kernel) {
  return tune::is_word(kernel.op) && tune::is_word(kernel.build.id) && !kernel.op.empty() &&
         !kernel.build.id.empty() && tune::is_word(kernel.build.build);
}

}  // namespace

/// The program with the two pipes to it.
class ExternalKernels::Process {
 public:
  Process(pid_t pid, int questions, int answers)
      : pid_(pid), questions_(questions), answers_(answers) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    ::close(questions_);
    ::close(answers_);
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  bool write(std::string_view text) { return base::write_all(questions_, text); }

  /// The lines before a line `end`, each with its newline. Fails if the program ends or takes too
  /// long.
  Result<std::string> read_until(std::string_view end, milliseconds most) {
    const auto until = steady_clock::now() + most;
    std::string lines;
    while (true) {
      if (const size_t at = read_.find('\n'); at != std::string::npos) {
        const std::string line = read_.substr(0, at + 1);
        read_.erase(0, at + 1);
        if (line == base::concat(end, "\n")) return lines;
        lines += line;
        continue;
      }
      if (Status more = read_more(until); !more.ok()) return more;
    }
  }

 private:
  Status read_more(steady_clock::time_point until) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) return failed("the Python worker gave no answer in time");
    pollfd waited{answers_, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(left.count()));
    if (ready <= 0) return {};  // the caller looks at the clock again
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(answers_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) return {};
    if (got <= 0) return failed("the Python worker ended");
    read_.append(bytes.data(), static_cast<size_t>(got));
    if (read_.size() > kMostBytes) return failed("the Python worker gave no sensible answer");
    return {};
  }

  static constexpr size_t kMostBytes = size_t{1} << 20;

  const pid_t pid_;
  const int questions_, answers_;
  std::string read_;
};

void ExternalKernels::End::operator()(Process* process) const { delete process; }

Result<ExternalKernels> ExternalKernels::start(const std::string& python,
                                               const Deadlines& deadlines) {
  Pipe questions, answers;
  if (!questions.made() || !answers.made()) return failed(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, questions.ends[0], 0);
  posix_spawn_file_actions_adddup2(&actions, answers.ends[1], 1);
  std::array<std::string, 3> words{python, "-m", "opmux.tune_worker"};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, python.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return failed(base::concat("cannot start ", python, ": ", std::strerror(error)));
  ExternalKernels made;
  made.process_.reset(new Process(pid, questions.take(1), answers.take(0)));
  made.python_ = python;
  made.deadlines_ = deadlines;
  // Without the other ends in this process, the end of the program ends the reading.
  ::close(questions.take(0));
  ::close(answers.take(1));
  return made;
}

Result<std::vector<ExternalKernel>> ExternalKernels::kernels() {
  const Result<std::string> named = process_->read_until("ready", deadlines_.start);
  if (!named) return failed(base::concat(python_, ": ", named.error().message()));
  std::vector<ExternalKernel> kernels;
  std::string_view lines = *named;
  while (!lines.empty()) {
    std::string_view line = base::take_until(lines, '\n');
    if (base::take_until(line, ' ') != "candidate") continue;
    ExternalKernel kernel = read_kernel(line);
    if (is_valid(kernel)) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Result<MeasuredPoint> ExternalKernels::race(const ExternalRace& asked) {
  const double seconds = static_cast<double>(asked.most_time_ns) * 1e-9;
  const std::string question =
      base::concat("race ", asked.kernel.op, " ", asked.kernel.build.id, " ", asked.against.id,
                   " threads=", asked.threads, " seconds=", std::to_string(seconds),
                   " cold=", asked.cold_bytes, " ", base::join(asked.words, " "), "\n");
  if (process_ == nullptr || !process_->write(question)) return failed("the Python worker ended");
  const Result<std::string> answer = process_->read_until("end", deadlines_.answer);
  if (!answer) {
    process_.reset();
    return answer.error();
  }
  if (answer->starts_with("error ")) return failed(std::string_view(*answer).substr(6));
  Result<MeasuredPoint> point = read_point(*answer);
  if (!point) return point;
  point->baseline = asked.against;
  return point;
}

}  // namespace opmux::tuner
