#include <sched.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "figure_groups.hpp"
#include "figures.hpp"

namespace opmux::bench {
namespace {

/// Two threads that run one after the other, round by round, so that what the machine does
/// meanwhile hits both alike.
class Turns {
 public:
  void wait_for(int whose) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == whose; });
  }
  void give_to(int whose) {
    {
      const std::lock_guard lock(mutex_);
      turn_ = whose;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
};

/// Both threads take turns on one processor: two differ by more than what is measured.
void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

/// Measures when it is its turn; the first turn meets the operator for the first time.
std::thread start(Turns& turns, int own, int processor, int rounds,
                  std::vector<Subject>& subjects) {
  return std::thread([&turns, own, processor, rounds, &subjects] {
    if (processor >= 0) stay_on(processor);
    for (int turn = 0; turn <= rounds; ++turn) {
      turns.wait_for(own);
      if (turn == 0) {
        for (Subject& subject : subjects) subject.run(subject.count);
      } else {
        measure_once(subjects);
      }
      turns.give_to(1 - own);
    }
  });
}

}  // namespace

Figure journal_figure(World& world, int rounds) {
  std::string folder = (std::filesystem::temp_directory_path() / "opmux-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const Operator op = world.operators[11];
  const Tensors tensors(32, 4096);
  const Subject handle{"handle", [&](int count) {
                         const Operator own = op;
                         const Tensors& t = tensors;
                         for (int i = 0; i < count; ++i) must(own(t.y, t.x, t.w, 1e-6));
                       }};
  std::vector<Subject> without{handle}, with{bare_subject(), handle};
  Turns turns;
  const int processor = ::sched_getcpu();
  std::thread before = start(turns, 0, processor, rounds, without);
  // The first thread has its marks; where they are they stay while calls are hot.
  turns.wait_for(1);
  const Runtime journaling =
      Runtime::create(
          {.environment = {{}}, .backends = false, .state = {folder, CrashJournal::with_handler}})
          .value();
  if (!journaling.crash_journal().on) throw std::runtime_error(journaling.crash_journal().problem);
  std::thread after = start(turns, 1, processor, rounds, with);
  before.join();
  after.join();
  std::filesystem::remove_all(folder);
  return {"a call's share in the crash journal",
          std::max(0.0, with[1].ns() - without[0].ns()) / with[0].ns(), 0.5, "x"};
}

}  // namespace opmux::bench
