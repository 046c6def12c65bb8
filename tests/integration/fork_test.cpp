#include "forked.hpp"
#include "stage.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <cstdlib>
#include <thread>

#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace opmux::test {
namespace {

constexpr int kThreads = 8;

int forks_wanted() {
  const char* number = std::getenv("OPMUX_TEST_FORKS");
  return number == nullptr ? 200 : std::atoi(number);
}

uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

/// Duration of a call. If other processes preempted the thread, uses its processor time instead.
template <class Call>
uint64_t time_of(Call&& call) {
  const auto preempted = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  };
  const long switches = preempted();
  const uint64_t wall = nanoseconds(CLOCK_MONOTONIC);
  const uint64_t cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  call();
  const uint64_t cpu_spent = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
  const uint64_t wall_spent = nanoseconds(CLOCK_MONOTONIC) - wall;
  return switches == preempted() ? wall_spent : cpu_spent;
}

/// Threads that call an operator continuously; two of them also publish, register and nest scopes.
class Crowd {
 public:
  Crowd(Stage& stage, const Operator& op) {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, i, &stage, &op] { work(i, stage, op); });
    }
    while (rounds_.load() < 10 * kThreads) std::this_thread::yield();
  }
  ~Crowd() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  uint64_t mistakes() const { return mistakes_.load(); }

 private:
  void work(int number, Stage& stage, const Operator& op) {
    for (int round = 0; !stop_.load(std::memory_order_relaxed); ++round) {
      const Rows rows(1 + round % 3, 8);
      if (!op(rows.y, rows.x).ok()) mistakes_.fetch_add(1);
      if (number == 0) publish(stage, round);
      if (number == 1) registered(stage, op, round);
      rounds_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void publish(Stage& stage, int round) {
    const Policy policy{.prefer = {round % 2 == 0 ? "default" : "reference"},
                        .deny = {"copy/never.*"}};
    if (!stage.runtime.policy().set(policy).ok()) mistakes_.fetch_add(1);
    (void)stage.runtime.tag("round" + std::to_string(round % 64));
    (void)stage.runtime.stats();
  }
  void registered(Stage& stage, const Operator& op, int round) {
    auto racer = stage.runtime.implement(
        {.id = "copy/racer.one", .kind = Kind::default_, .priority = 10, .run = [](CallFrame&) {
           return Outcome::ok;
         }});
    if (!racer) return void(mistakes_.fetch_add(1));
    const PolicyScope scope(stage.runtime, {.prefer = {round % 2 == 0 ? "vendor" : "reference"}});
    const Rows rows;
    if (!op(rows.y, rows.x).ok()) mistakes_.fetch_add(1);
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> rounds_{0}, mistakes_{0};
  std::vector<std::thread> threads_;
};

/// Shared memory through which a child reports the duration of its first call.
struct Page {
  Page()
      : first_call(static_cast<std::atomic<uint64_t>*>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Page() { munmap(first_call, 4096); }
  std::atomic<uint64_t>* first_call;
};

/// Does everything that a process can do with a runtime, in a child.
bool live_on(Stage& stage, const Operator& op, std::atomic<uint64_t>& first_call) {
  const Rows rows;
  const auto called = [&] { return ran_by([&] { (void)op(rows.y, rows.x); }); };
  std::string first;
  first_call.store(time_of([&] { first = called(); }));
  if (first != "copy/fast.one" && first != "copy/plain.one") return false;
  if (!stage.runtime.define(kCopy).ok()) return false;
  stage.add({.id = "copy/never.one", .kind = Kind::default_, .priority = 990});
  stage.add({.id = "copy/child.one", .kind = Kind::default_, .priority = 900});
  {
    const PolicyScope scope(stage.runtime, {.prefer = {"default"}});
    if (called() != "copy/child.one") return false;  // The parent's deny rule applies here too.
  }
  if (!stage.runtime.policy().set({.deny = {"default"}}).ok()) return false;
  if (called() != "copy/plain.one") return false;
  if (!stage.runtime.policy().reset().ok()) return false;
  if (called() != "copy/never.one") return false;
  if (!stage.kernel("copy/never.one").registration.withdraw().ok()) return false;
  return called() == "copy/child.one" && stage.stats("copy/child.one").calls == 2;
}

TEST(Fork, children_of_a_calling_process_neither_hang_nor_lose_anything) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(stage.runtime.policy().set({.deny = {"copy/never.*"}}).ok());
  const Rows rows;
  ASSERT_TRUE(op(rows.y, rows.x).ok());
  const int forks = forks_wanted();
  const Page page;
  int late = 0;
  uint64_t latest = 0;
  {
    const Crowd crowd(stage, op);
    for (int i = 0; i < forks; ++i) {
      ASSERT_TRUE(true_in_forked_child([&] { return live_on(stage, op, *page.first_call); }))
          << "fork " << i;
      const uint64_t took = page.first_call->load();
      late += took > 10'000'000 ? 1 : 0;
      latest = std::max(latest, took);
    }
    EXPECT_EQ(crowd.mistakes(), 0u);
  }
  EXPECT_LE(late, forks / 100) << "first calls above 10 ms; the longest took " << latest << " ns";
  RecordProperty("longest_first_call_us", std::to_string(latest / 1000));
}

/// Registers a backend with a probe, as a plugin would.
void add_backend(Stage& stage, const std::string& name, uint32_t flags,
                 std::function<std::optional<std::string>()> probe) {
  registry::Batch batch;
  batch.backend.name = name;
  batch.backend.kind = Kind::default_;
  batch.backend.flags = flags;
  batch.backend.probe = std::move(probe);
  registry::ImplementationDraft draft;
  draft.op = "copy";
  draft.variant = "one";
  draft.kernel.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; };
  batch.implementations.push_back(std::move(draft));
  ASSERT_TRUE(stage.runtime.core().registry().add(batch, true).refused.empty());
}

std::string who(const Operator& op, const Rows& rows) {
  CallReport report;
  (void)op.with(report)(rows.y, rows.x);
  return report.implementation;
}

TEST(Fork, a_backend_that_a_fork_destroys_is_refused_in_the_child) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  add_backend(stage, "device", OPMUX_BACKEND_FORK_LOST, {});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  // Not used yet, so the child may be the first to use it.
  EXPECT_TRUE(true_in_forked_child([&] { return who(op, rows) == "copy/device.one"; }));
  EXPECT_EQ(who(op, rows), "copy/device.one");
  ASSERT_TRUE(op(rows.y, rows.x).ok());
  ASSERT_TRUE(op(rows.y, rows.x).ok());
  EXPECT_TRUE(true_in_forked_child([&] {
    // First the cached path: its plan belongs to the parent.
    return ran_by([&] { (void)op(rows.y, rows.x); }) == "copy/plain.one" &&
           who(op, rows) == "copy/plain.one" &&
           candidate(op.explain(rows.y, rows.x), "copy/device.one").code == "backend.forked";
  }));
  EXPECT_EQ(who(op, rows), "copy/device.one");
}

TEST(Fork, a_plan_bound_to_such_a_backend_is_revoked_in_the_child) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  add_backend(stage, "device", OPMUX_BACKEND_FORK_LOST, {});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  Plan plan = op.bind(rows.y, rows.x).value();
  Plan unchecked = op.bind(rows.y, rows.x).value();
  ASSERT_TRUE(plan(rows.y, rows.x).ok());
  EXPECT_TRUE(true_in_forked_child([&] {
    if (plan(rows.y, rows.x).code() != Code::revoked) return false;
    if (unchecked.run_unchecked().code() != Code::revoked) return false;
    if (plan.state() != Plan::State::revoked || !plan.refresh().ok()) return false;
    return plan.implementation() == "copy/plain.one" && plan(rows.y, rows.x).ok();
  }));
  EXPECT_TRUE(plan(rows.y, rows.x).ok());
  EXPECT_EQ(plan.state(), Plan::State::current);
}

TEST(Fork, a_backend_that_wants_it_is_probed_again_in_the_child) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  const pid_t parent = getpid();
  std::atomic<int> probes{0};
  add_backend(stage, "device", OPMUX_BACKEND_FORK_REINIT, [&]() -> std::optional<std::string> {
    ++probes;
    if (getpid() == parent) return std::nullopt;
    return "no device in this process";
  });
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  EXPECT_EQ(who(op, rows), "copy/device.one");
  ASSERT_TRUE(op(rows.y, rows.x).ok());
  EXPECT_TRUE(true_in_forked_child([&] {
    const Candidate device = candidate(op.explain(rows.y, rows.x), "copy/device.one");
    return ran_by([&] { (void)op(rows.y, rows.x); }) == "copy/plain.one" && probes == 2 &&
           device.code == "backend.unavailable" && device.reason == "no device in this process";
  }));
  EXPECT_EQ(who(op, rows), "copy/device.one");
  EXPECT_EQ(probes, 1);
}

}  // namespace
}  // namespace opmux::test
