#include <sched.h>
#include <stdexcept>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "figure_groups.hpp"
#include "figures.hpp"
#include "processor.hpp"

namespace opmux::bench {
namespace {

/// Makes two threads alternate round by round, so that other load on the machine affects both
/// equally.
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

/// Pins the calling thread, so that both threads alternate on one processor. The difference between
/// two processors is larger than the measured cost.
void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

/// Starts a thread that measures one round per turn. The first turn only warms up.
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
  if (::mkdtemp(folder.data()) == nullptr)
    throw std::runtime_error("cannot create a temporary folder");
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
  // The first thread already has its hazard slots in ordinary memory. Its hot calls keep using them
  // after the journal is created.
  turns.wait_for(1);
  const Runtime journaling =
      Runtime::create(
          {.environment = {{}}, .backends = false, .state = {folder, CrashJournal::with_handler}})
          .value();
  if (!journaling.health().crash_journal().on)
    throw std::runtime_error(journaling.health().crash_journal().problem);
  std::thread after = start(turns, 1, processor, rounds, with);
  before.join();
  after.join();
  std::filesystem::remove_all(folder);
  // A load whose address has the same low twelve bits as a store that has not finished waits for
  // it. The slot in the journal may share them with a line of the plan. Processors that forward
  // stores at a cost also wait longer here.
  return {"additional cost of the crash journal with its handler",
          std::max(0.0, with[1].ns() - without[0].ns()) / with[0].ns(),
          limit_by_forwarding(0.5, 1.3), "x"};
}

}  // namespace opmux::bench
