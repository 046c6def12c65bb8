// A program with eight threads that are always inside some kernel: crash_server FOLDER COMMAND.
//   fault HOW THREAD   one thread's kernel faults after a while
//   pool HOW           a task of a kernel faults on a thread of the pool
//   outside HOW        a thread faults outside every kernel
//   exit               calls exit(7) while all threads are inside kernels
//   serve [THREADS]    prints "ready" and runs until it is killed
//   choices            prints each operator's candidates and the reasons of refused ones
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <opmux/opmux.hpp>

#include "faults.hpp"

namespace opmux::test {
namespace {

constexpr int kThreads = 8;

struct Work {
  std::string how;  ///< empty if this kernel never faults
  std::atomic<int> calls{0};
};

Work works[kThreads];
std::atomic<int> threads_inside{0};

void spend(int steps) {
  for (int i = 0; i < steps; ++i) asm volatile("" : : "r"(i));
}

/// Takes long enough that a thread is inside a kernel most of the time.
int32_t work(void* user_data, const opmux_call*) {
  auto& own = *static_cast<Work*>(user_data);
  const int calls = own.calls.fetch_add(1) + 1;
  if (calls == 1) threads_inside.fetch_add(1);
  spend(20000);
  // By then the other threads are running.
  if (!own.how.empty() && calls > 50 && threads_inside.load() == kThreads) fault(own.how);
  return OPMUX_OK;
}

int32_t shared_work(void* user_data, const opmux_call* call) {
  static std::atomic<const Work*> on_helper{nullptr};
  static thread_local bool caller = false;
  caller = true;
  on_helper.store(static_cast<Work*>(user_data));
  const auto piece = [](void*, int64_t) {
    spend(100000);
    if (!caller) fault(on_helper.load()->how);
  };
  if (call->parallel_for != nullptr) call->parallel_for(call->pool, 64, nullptr, piece);
  return OPMUX_OK;
}

int32_t slow(void*, const opmux_call*) { return OPMUX_OK; }

std::string name_of_op(int i) { return "op" + std::to_string(i); }

class Server {
 public:
  explicit Server(const std::string& folder, bool pool)
      : runtime_(Runtime::create({.environment = {{}},
                                  .backends = false,
                                  .threads = 2,
                                  .state = {folder, CrashJournal::with_handler,
                                            std::getenv("OPMUX_STATE_PAGE") != nullptr}})
                     .value()) {
    for (int i = 0; i < kThreads; ++i) {
      check(runtime_.define(name_of_op(i) + "(out Tensor y[N], Tensor x[N])"));
      add({.id = name_of_op(i) + "/fast.kernel",
           .kind = Kind::default_,
           .kernel = {.user_data = &works[i], .run = pool ? shared_work : work}});
      add({.id = name_of_op(i) + "/plain.slow", .kind = Kind::reference, .kernel = {.run = slow}});
    }
  }

  static void check(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "crash_server: %s\n", std::string(status.message()).c_str());
    ::_exit(3);
  }

  /// One thread uses a bound plan, one a bound plan without checks, the others use handles.
  void call_for_ever(int i) {
    float x[16] = {}, y[16] = {};
    const TensorView in(x, f32, {16}), out(y, f32, {16});
    const Operator op = runtime_.op(name_of_op(i)).value();
    if (i % 4 == 1) {
      Plan plan = op.bind(out, in).value();
      while (true) check(plan(out, in));
    }
    if (i % 4 == 2) {
      Plan plan = op.bind(out, in).value();
      check(plan.prepare(out, in));
      while (true) check(plan.run_unchecked());
    }
    if (i % 4 == 3) {
      // With a report, every call takes the slow path.
      CallReport report;
      while (true) check(op.with(report)(out, in));
    }
    while (true) check(op(out, in));
  }

  void start(int threads) {
    for (int i = 0; i < threads; ++i) std::thread([this, i] { call_for_ever(i); }).detach();
  }

  void print_choices() {
    float x[16] = {}, y[16] = {};
    for (int i = 0; i < kThreads; ++i) {
      const TensorView in(x, f32, {16}), out(y, f32, {16});
      const Explanation why = runtime_.op(name_of_op(i)).value().explain(out, in);
      for (const Candidate& one : why.candidates) {
        std::printf("%s %s %s\n", one.id.c_str(), one.code.empty() ? "-" : one.code.c_str(),
                    one.id == why.chosen ? "chosen" : "");
      }
    }
  }

 private:
  void add(const Implementation& implementation) {
    auto made = runtime_.implement(implementation);
    if (!made) check(made.error());
    made->keep();
  }
  Runtime runtime_;
};

[[noreturn]] void wait_for_the_end() {
  while (true) ::pause();
}

int run(const std::vector<std::string>& words) {
  const std::string& command = words.at(1);
  if (command == "fault") works[std::stoi(words.at(3))].how = words.at(2);
  if (command == "pool") works[0].how = words.at(2);
  Server server(words.at(0), command == "pool");
  if (command == "choices") {
    server.print_choices();
    return 0;
  }
  const bool few = command == "serve" && words.size() > 2;
  const int threads = command == "pool" ? 1 : few ? std::stoi(words.at(2)) : kThreads;
  server.start(threads);
  while (command != "pool" && threads_inside.load() < threads) std::this_thread::yield();
  if (command == "exit") std::exit(7);
  if (command == "outside") {
    // From a thread that the journal knows and that is not inside a kernel.
    server.print_choices();
    fault(words.at(2));
  }
  if (command == "serve") {
    std::puts("ready");
    std::fflush(stdout);
  }
  wait_for_the_end();
}

}  // namespace
}  // namespace opmux::test

int main(int argc, char** argv) {
  ::alarm(60);
  return opmux::test::run(std::vector<std::string>(argv + 1, argv + argc));
}
