#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace opmux::test {

/// crash_server in a child process.
class ServerProcess {
 public:
  explicit ServerProcess(std::vector<std::string> words) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    std::vector<char*> argv{const_cast<char*>(CRASH_SERVER)};
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      // Discard the output of sanitizers and abort().
      const int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, STDERR_FILENO);
      ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ends[0];
  }
  ~ServerProcess() {
    if (out_ >= 0) ::close(out_);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// The next output; empty at the end.
  std::string read_some() const {
    char text[4096];
    const ssize_t got = ::read(out_, text, sizeof text);
    return {text, got > 0 ? static_cast<size_t>(got) : 0};
  }
  std::string read_all() const {
    std::string all;
    for (std::string some = read_some(); !some.empty(); some = read_some()) all += some;
    return all;
  }
  /// The status as returned by waitpid.
  int end() const {
    int status = -1;
    if (process_ > 0) ::waitpid(process_, &status, 0);
    return status;
  }
  /// Kills it while its threads are inside kernels.
  void kill_at_work() const {
    read_some();
    send(SIGKILL);
    end();
  }
  /// Guards against process_ <= 0, which would signal a whole group.
  void send(int signal) const {
    if (process_ > 0) ::kill(process_, signal);
  }

 private:
  pid_t process_ = -1;
  int out_ = -1;
};

/// Runs a command to its end and returns its status.
inline int end_of(std::vector<std::string> words) {
  const ServerProcess server(std::move(words));
  server.read_all();
  return server.end();
}

}  // namespace opmux::test
