#include <opmux/state_page.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include <deque>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/files.hpp"
#include "forked.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A runtime with a status file and a clock that the test sets.
struct PageStage {
  explicit PageStage(Variables variables = {{"OPMUX_STATE_PAGE", "1"}})
      : stage(options(std::move(variables), folder.path())) {}

  static Options options(Variables variables, const std::string& folder) {
    Options options = bare(std::move(variables));
    options.state.folder = folder;
    options.sources.own_thread = false;
    return options;
  }
  Operator copies() { return define_three_copies(stage); }
  /// Passes more time than the job is idle after a write, which is 100 times what the write cost.
  void tick() { stage.runtime.tick(now += 20s); }
  RuntimeState state() {
    tick();
    const auto found = process_state(::getpid(), folder.path());
    EXPECT_TRUE(found) << found.error().message();
    return found ? found->runtimes.at(0) : RuntimeState();
  }

  TemporaryFolder folder;
  Stage stage;
  std::chrono::nanoseconds now{1s};
};

const OperatorPageState& op_of(const RuntimeState& state, std::string_view name) {
  static const OperatorPageState kNone;
  const auto at = std::ranges::find(state.operators, name, &OperatorPageState::name);
  return at == state.operators.end() ? kNone : *at;
}

const ImplementationPageState& implementation(const RuntimeState& state, std::string_view id) {
  static const ImplementationPageState kNone;
  const OperatorPageState& op = op_of(state, id.substr(0, id.find('/')));
  const auto at = std::ranges::find(op.implementations, id, &ImplementationPageState::id);
  return at == op.implementations.end() ? kNone : *at;
}

TEST(StatusPage, is_written_only_if_enabled) {
  PageStage off{{}};
  off.tick();
  EXPECT_FALSE(std::filesystem::exists(off.folder.path() + "/run"));
  const auto none = process_state(::getpid(), off.folder.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason(), "state_page.none");
  EXPECT_THAT(std::string(none.error().message()), HasSubstr("OPMUX_STATE_PAGE=1"));
  EXPECT_THAT(process_states(off.folder.path()), IsEmpty());

  const TemporaryFolder folder;
  Options options = PageStage::options({}, folder.path());
  options.state.state_page = true;
  Runtime runtime = Runtime::create(options).value();
  runtime.tick(1s);
  EXPECT_TRUE(process_state(::getpid(), folder.path()));
}

TEST(StatusPage, shows_implementations_call_counts_and_classes) {
  PageStage own;
  const Operator copy = own.copies();
  const Rows sixteen(2, 16), eight(2, 8);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(copy(sixteen.y, sixteen.x).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(copy(eight.y, eight.x).ok());
  const RuntimeState state = own.state();
  EXPECT_EQ(state.calls("copy/a.x"), 5u);
  EXPECT_EQ(state.calls("copy/b.x"), 3u);
  EXPECT_EQ(state.calls("copy/c.x"), 0u);
  EXPECT_EQ(op_of(state, "copy").calls(), 8u);
  std::vector<std::string> firsts;
  for (const ChoicePageState& choice : state.choices) {
    EXPECT_EQ(choice.op, "copy");
    EXPECT_THAT(choice.when, HasSubstr("H % 16"));
    EXPECT_EQ(choice.accepted.back(), "copy/c.x");
    EXPECT_GT(choice.generation, 0u);
    firsts.push_back(choice.accepted.front());
  }
  EXPECT_THAT(firsts, testing::UnorderedElementsAre("copy/a.x", "copy/b.x"));
  EXPECT_EQ(state.version, OPMUX_VERSION);
  EXPECT_EQ(state.mode, "dynamic");
  EXPECT_EQ(state.health, "healthy");
}

TEST(StatusPage, shows_the_cells_of_sampled_calls) {
  PageStage own({{"OPMUX_STATE_PAGE", "1"}, {"OPMUX_NUM_THREADS", "3"}});
  const Operator copy = own.copies();
  const Rows sixteen(2, 16), eight(2, 8);
  for (int i = 0; i < 640; ++i) ASSERT_TRUE(copy(eight.y, eight.x).ok());
  EXPECT_THAT(own.state().cells, IsEmpty()) << "no call was sampled before the first page";
  // The first 32 of these are sampled; each stands for 640 / 32.
  for (int i = 0; i < 24; ++i) ASSERT_TRUE(copy(eight.y, eight.x).ok());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(copy(sixteen.y, sixteen.x).ok());
  const RuntimeState state = own.state();
  ASSERT_EQ(state.cells.size(), 2u);
  std::map<std::string, uint64_t> calls;
  for (const CellPageState& cell : state.cells) {
    EXPECT_EQ(cell.op, "copy");
    EXPECT_EQ(cell.tensors, "y=f32 x=f32");
    EXPECT_EQ(cell.threads, 3);
    EXPECT_GT(cell.time_ns, 0u);
    EXPECT_EQ(cell.error_ns, 0u);
    calls[cell.dims] = cell.calls;
  }
  EXPECT_EQ(calls, (std::map<std::string, uint64_t>{{"H=8 rows=2", 480}, {"H=16 rows=2", 160}}));
  EXPECT_EQ(state.calls("copy/a.x"), 40u);
  EXPECT_EQ(state.calls("copy/b.x"), 664u);
}

TEST(StatusPage, shows_the_cells_of_all_calls_if_all_are_sampled) {
  PageStage own;
  const Operator copy = own.copies();
  const Rows sixteen(2, 16), eight(2, 8), first(3, 8);
  const auto call = [&](const Rows& rows, int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(copy(rows.y, rows.x).ok());
  };
  call(first, 64);
  own.tick();
  call(first, 64);  // sampled, but before
  ASSERT_TRUE(own.stage.runtime.tuning().sample_all_calls(true).ok());
  call(eight, 50);
  own.tick();  // windows of the status file change nothing
  call(eight, 50);
  call(sixteen, 3);
  ASSERT_TRUE(own.stage.runtime.tuning().sample_all_calls(false).ok());
  call(sixteen, 40);
  const std::string path = own.folder.path() + "/calls.page";
  ASSERT_TRUE(write_state_page(own.stage.runtime, path).ok());
  const ProcessState process = open_state_page(path).value();
  EXPECT_EQ(process.pid, ::getpid());
  ASSERT_EQ(process.runtimes.size(), 1u);
  std::map<std::string, uint64_t> calls;
  for (const CellPageState& cell : process.runtimes[0].cells) calls[cell.dims] = cell.calls;
  EXPECT_EQ(calls, (std::map<std::string, uint64_t>{{"H=8 rows=2", 100}, {"H=16 rows=2", 3}}));
  const Status refused = write_state_page(own.stage.runtime, own.folder.path() + "/no/file");
  EXPECT_EQ(refused.reason(), "state_page.file");
}

TEST(StatusPage, sampled_calls_run_what_others_run) {
  PageStage own;
  const Operator copy = own.copies();
  const Rows sixteen(2, 16), eight(2, 8);
  const auto run = [&] {
    return ran_by([&] {
      EXPECT_TRUE(copy(sixteen.y, sixteen.x).ok());
      EXPECT_TRUE(copy(eight.y, eight.x).ok());
    });
  };
  const std::string before = run();
  EXPECT_EQ(before, "copy/a.x copy/b.x");
  own.tick();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(), before) << i;
}

TEST(StatusPage, keeps_the_cells_that_take_the_most_time) {
  PageStage own;
  const Operator copy = own.copies();
  const Rows often(3, 8);
  std::deque<Rows> rare;
  for (int64_t rows = 4; rows < 124; ++rows) rare.emplace_back(rows, 8);
  for (int window = 0; window < 20; ++window) {
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(copy(often.y, often.x).ok());
      const Rows& other = rare[(static_cast<size_t>(window) * 16 + i) % rare.size()];
      ASSERT_TRUE(copy(other.y, other.x).ok());
    }
    own.tick();
  }
  const RuntimeState state = own.state();
  EXPECT_EQ(state.cells.size(), 64u);
  const auto found = std::ranges::find(state.cells, "H=8 rows=3", &CellPageState::dims);
  ASSERT_NE(found, state.cells.end());
  EXPECT_LT(found - state.cells.begin(), 5);
}

TEST(StatusPage, calls_while_a_graph_is_captured_are_not_sampled) {
  PageStage own;
  const Operator copy = own.stage.define(kCopy);
  own.stage.add({.id = "copy/a.x", .kind = Kind::default_, .flags = OPMUX_IMPL_CAPTURE_SAFE});
  const Rows eight(2, 8);
  const AmbientScope capturing({.capturing = true});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(copy(eight.y, eight.x).ok());
  own.tick();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(copy(eight.y, eight.x).ok());
  EXPECT_THAT(own.state().cells, IsEmpty());
}

TEST(StatusPage, describes_the_process) {
  PageStage own;
  own.tick();
  const auto found = process_state(::getpid(), own.folder.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pid, ::getpid());
  EXPECT_TRUE(found->alive);
  EXPECT_FALSE(found->elsewhere);
  EXPECT_FALSE(found->name.empty());
  EXPECT_GT(found->started, 1'600'000'000);
  EXPECT_LE(found->started, found->runtimes[0].since + 1);
  EXPECT_LE(found->runtimes[0].since, found->runtimes[0].written / 1000);
  EXPECT_EQ(process_states(own.folder.path()).size(), 1u);
}

TEST(StatusPage, describes_every_runtime_of_a_process) {
  PageStage own;
  Stage second(PageStage::options({{"OPMUX_STATE_PAGE", "1"}}, own.folder.path()));
  own.tick();
  second.runtime.tick(1s);
  const auto both = process_state(::getpid(), own.folder.path());
  ASSERT_TRUE(both);
  ASSERT_EQ(both->runtimes.size(), 2u);
  EXPECT_LT(both->runtimes[0].number, both->runtimes[1].number);
}

TEST(StatusPage, follows_the_policy_in_force_and_what_was_refused) {
  PageStage own;
  own.copies();
  const RuntimeState before = own.state();
  EXPECT_EQ(before.policy_name, "");
  EXPECT_THAT(before.sources, IsEmpty());
  ASSERT_TRUE(
      own.stage.runtime.policy()
          .load("opmux: 1\nrules:\n- {name: no-a, op: copy, deny: [copy/a.*]}\n", "policy.yaml")
          .ok());
  const RuntimeState after = own.state();
  EXPECT_GT(after.generation, before.generation);
  EXPECT_EQ(after.policy_name, "policy.yaml");
  EXPECT_EQ(after.policy_digest, own.stage.runtime.policy().state().digest);
  EXPECT_EQ(after.policy_version, 1u);
  EXPECT_EQ(after.policy_rules, 1u);
  EXPECT_EQ(implementation(after, "copy/a.x").code, "policy.denied");
  EXPECT_THAT(implementation(after, "copy/a.x").reason, HasSubstr("\"no-a\" (policy.yaml:3"));
  EXPECT_EQ(implementation(after, "copy/b.x").code, "");
  EXPECT_TRUE(std::ranges::any_of(after.sources, [](const PolicySourceState& each) {
    return each.source == "file" && each.name == "policy.yaml" && each.rules == 1;
  }));
  EXPECT_FALSE(own.stage.runtime.policy().load("opmux: 1\nrulez: []\n", "policy.yaml").ok());
  const RuntimeState refused = own.state();
  EXPECT_EQ(refused.policies_refused, 1u);
  EXPECT_THAT(refused.last_refusal, HasSubstr("rulez"));
  EXPECT_EQ(refused.policy_version, 1u);
}

TEST(StatusPage, shows_open_breakers_fallbacks_and_disabled_backends) {
  PageStage own;
  const Operator copy = own.copies();
  const Rows rows(2, 16);
  ASSERT_TRUE(own.stage.runtime.health().force_breaker("copy/a.x", BreakerForce::isolate).ok());
  ASSERT_TRUE(copy(rows.y, rows.x).ok());
  ASSERT_TRUE(own.stage.runtime.plugins().enable_backend("c", false).ok());
  ASSERT_TRUE(copy(rows.y, rows.x).ok());
  const RuntimeState state = own.state();
  EXPECT_EQ(state.health, "degraded");
  ASSERT_EQ(state.breakers.size(), 1u);
  EXPECT_EQ(state.breakers[0].implementation, "copy/a.x");
  EXPECT_EQ(state.breakers[0].state, "isolated");
  EXPECT_EQ(implementation(state, "copy/a.x").code, "health.open");
  EXPECT_EQ(implementation(state, "copy/c.x").code, "backend.disabled");
  ASSERT_EQ(state.choices.size(), 1u);
  EXPECT_THAT(state.choices[0].accepted, ElementsAre("copy/b.x"));
  EXPECT_EQ(state.choices[0].rests, "copy/a.x");
  EXPECT_EQ(state.calls("copy/b.x"), 2u);
  const auto backend = std::ranges::find(state.backends, "c", &BackendPageState::name);
  ASSERT_NE(backend, state.backends.end());
  EXPECT_EQ(backend->state, "off");
}

TEST(StatusPage, counts_calls_that_were_taken_over) {
  PageStage own;
  const Operator copy = own.copies();
  own.stage.kernel("copy/a.x").body = [](CallFrame&) { return Outcome::failed; };
  const Rows rows(2, 16);
  ASSERT_TRUE(copy(rows.y, rows.x).ok());
  const RuntimeState state = own.state();
  EXPECT_EQ(implementation(state, "copy/a.x").failed, 1u);
  EXPECT_EQ(implementation(state, "copy/b.x").stood_in, 1u);
}

TEST(StatusPage, counts_calls_that_are_decided_each_time) {
  PageStage own;
  const Operator copy = own.copies();
  ASSERT_TRUE(own.stage.runtime
                  .set_selector({.reads = {"dtype(x)"},
                                 .pick = [](const Selection&) { return std::nullopt; }})
                  .ok());
  constexpr DType kPairs{f32.code, f32.bits, 2};  // class keys cannot hold several lanes
  Rows rows;
  const TensorView y(rows.out, kPairs, {2, 16}), x(rows.in, kPairs, {2, 16});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copy(y, x).ok()); }), "copy/a.x");
  }
  const RuntimeState state = own.state();
  EXPECT_EQ(implementation(state, "copy/a.x").decided_each_time, 3u);
  EXPECT_EQ(implementation(state, "copy/b.x").decided_each_time, 0u);
}

TEST(StatusPage, is_rewritten_only_after_a_change) {
  PageStage own;
  const Operator copy = own.copies();
  const RuntimeState first = own.state();
  EXPECT_EQ(own.state().updates, first.updates);
  const Rows rows(2, 16);
  ASSERT_TRUE(copy(rows.y, rows.x).ok());
  EXPECT_EQ(own.state().updates, first.updates + 1);
}

TEST(StatusPage, probes_no_backend_and_makes_no_decision) {
  PageStage own;
  own.copies();
  const RuntimeState state = own.state();
  EXPECT_THAT(state.choices, IsEmpty());
  EXPECT_EQ(op_of(state, "copy").implementations.size(), 3u);
}

TEST(StatusPage, is_removed_with_the_runtime) {
  const TemporaryFolder folder;
  {
    Stage stage(PageStage::options({{"OPMUX_STATE_PAGE", "1"}}, folder.path()));
    stage.runtime.tick(1s);
    EXPECT_FALSE(std::filesystem::is_empty(folder.path() + "/run"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() + "/run"));
}

TEST(StatusPage, of_a_killed_process_is_reported_and_removed) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Stage stage(PageStage::options({{"OPMUX_STATE_PAGE", "1"}}, folder.path()));
    stage.runtime.tick(1s);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto dead = process_state(child, folder.path());
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().reason(), "state_page.process");
  EXPECT_THAT(std::string(dead.error().message()), HasSubstr("left a status file"));
  EXPECT_THAT(process_states(folder.path()), IsEmpty());
  const auto page = std::filesystem::directory_iterator(folder.path() + "/run")->path().string();
  const auto left = open_state_page(page);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->pid, child);
  EXPECT_FALSE(left->alive);
  Stage next(PageStage::options({{"OPMUX_STATE_PAGE", "1"}}, folder.path()));
  EXPECT_FALSE(std::filesystem::exists(page));
}

/// Runs `test` while a process of the given user keeps a status file in the folder; empty: the
/// default folder.
template <class Test>
void with_process_of(uid_t user, const std::string& folder, Test&& test) {
  int ready[2], done[2];
  ASSERT_TRUE(::pipe(ready) == 0 && ::pipe(done) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    char byte = 0;
    ::unsetenv("XDG_RUNTIME_DIR");
    bool fine = ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
    Stage stage(PageStage::options({{"OPMUX_STATE_PAGE", "1"}}, folder));
    stage.runtime.tick(1s);
    fine = fine && ::write(ready[1], &byte, 1) == 1 && ::read(done[0], &byte, 1) == 0;
    _exit(fine ? 0 : 1);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  test(child);
  for (const int each : {ready[0], ready[1], done[0], done[1]}) ::close(each);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(StatusPage, of_another_user_is_read_by_root) {
  if (::geteuid() != 0) return;  // only root can start a process of another user
  constexpr uid_t kOther = 65534;
  const TemporaryFolder folder;
  ASSERT_EQ(::chown(folder.path().c_str(), kOther, kOther), 0);
  with_process_of(kOther, folder.path(), [&](pid_t child) {
    const auto found = process_state(child, folder.path());
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->pid, child);
    EXPECT_THAT(process_states(folder.path()), IsEmpty()) << "only those of this user";
    // A third user may not speak for the process.
    const std::string run = folder.at("run");
    ASSERT_EQ(::chown(run.c_str(), 65533, 65533), 0);
    EXPECT_EQ(process_state(child, folder.path()).error().reason(), "state_page.none");
    ASSERT_EQ(::chown(run.c_str(), kOther, kOther), 0);
    const auto page = std::filesystem::directory_iterator(run)->path().string();
    ASSERT_EQ(::chown(page.c_str(), 65533, 65533), 0);
    EXPECT_EQ(process_state(child, folder.path()).error().reason(), "state_page.none");
    ASSERT_EQ(::chown(page.c_str(), kOther, kOther), 0);
    EXPECT_TRUE(process_state(child, folder.path()));
  });
}

TEST(StatusPage, of_another_user_is_found_by_root_in_the_default_folder_of_that_user) {
  constexpr uid_t kOther = 65532;
  const std::string used = base::run_folders_of(kOther).back();
  if (::geteuid() != 0 || std::filesystem::exists(used)) return;
  with_process_of(kOther, "", [](pid_t child) {
    const auto found = process_state(child, "/nonexistent");
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->pid, child);
  });
  std::filesystem::remove_all(used);
}

TEST(StatusPage, of_a_forked_child_is_separate) {
  PageStage own;
  const Operator copy = own.copies();
  const Rows rows(2, 16);
  ASSERT_TRUE(copy(rows.y, rows.x).ok());
  EXPECT_EQ(own.state().calls("copy/a.x"), 1u);
  EXPECT_TRUE(true_in_forked_child([&] {
    const bool nothing_yet = !process_state(::getpid(), own.folder.path());
    for (int i = 0; i < 4; ++i) (void)copy(rows.y, rows.x);
    own.tick();
    const auto mine = process_state(::getpid(), own.folder.path());
    return nothing_yet && mine && mine->runtimes.at(0).calls("copy/a.x") >= 4 &&
           process_states(own.folder.path()).size() == 2;
  }));
  EXPECT_EQ(own.state().calls("copy/a.x"), 1u);
}

TEST(StatusPage, that_cannot_be_written_is_logged_once) {
  const TemporaryFolder folder;
  write_file(folder.at("run"), "no folder");
  std::vector<std::string> told;
  Options options = PageStage::options({{"OPMUX_STATE_PAGE", "1"}}, folder.path());
  options.sink = [&](const Event& event) { told.emplace_back(event.code); };
  Stage stage(options);
  for (int i = 1; i < 5; ++i) stage.runtime.tick(std::chrono::seconds(i));
  EXPECT_THAT(told, ElementsAre("state_page.file"));
}

TEST(StatusPage, of_an_unknown_process_is_not_found) {
  const auto none = process_state(0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::not_found);
  EXPECT_EQ(none.error().reason(), "state_page.process");
  EXPECT_EQ(open_state_page("/nowhere").error().reason(), "state_page.read");
}

}  // namespace
}  // namespace opmux::test
