#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include <gtest/gtest.h>

#include <opmux/opmux.hpp>
#include <opmux/runtime.hpp>

#include "crash/quarantine_file.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

int fast_runs = 0;
int32_t run_fast(void*, const opmux_call*) {
  ++fast_runs;
  return OPMUX_OK;
}
int32_t run_plain(void*, const opmux_call*) { return OPMUX_OK; }

constexpr int64_t kToday = 1'700'000'000;

/// A runtime that finds an entry in its quarantine store.
class QuarantineChoice : public testing::Test {
 public:
  void enter(const std::string& id, const std::string& build, int64_t since = kToday) {
    crash::QuarantineList list;
    ASSERT_TRUE(
        store()
            .change(list,
                    [&](crash::QuarantineList& now) {
                      now.entries.push_back(
                          {id, build, "SIGSEGV", since, since + crash::kQuarantineSeconds});
                      now.ends.push_back(
                          {kToday, 77, {{"op/fast.kernel", "-"}, {"op/other.kernel", "-"}}});
                      return true;
                    })
            .ok());
  }
  crash::QuarantineStore store() const { return crash::QuarantineStore(folder.at("store")); }

  void start() {
    Options options{.environment = {{}}, .backends = false, .state = {folder.path(), {}}};
    options.sources.utc = [] { return std::chrono::sys_seconds(std::chrono::seconds(kToday)); };
    runtime.emplace(Runtime::create(options).value());
    ASSERT_TRUE(runtime->define("op(out Tensor y[N], Tensor x[N])").ok());
    add({.id = "op/fast.kernel", .kind = Kind::default_, .kernel = {.run = run_fast}});
    add({.id = "op/plain.slow", .kind = Kind::reference, .kernel = {.run = run_plain}});
    fast_runs = 0;
  }
  void add(const Implementation& implementation) {
    runtime->implement(implementation).value().keep();
  }
  Candidate candidate(const std::string& id) {
    const Explanation why = runtime->op("op").value().explain(out, in);
    const auto found = std::ranges::find(why.candidates, id, &Candidate::id);
    return found == why.candidates.end() ? Candidate{} : *found;
  }
  bool fast_is_used() {
    const int before = fast_runs;
    EXPECT_TRUE(runtime->call("op", out, in).ok());
    return fast_runs != before;
  }

  TemporaryFolder folder;
  float x[4] = {}, y[4] = {};
  TensorView in{x, f32, {4}}, out{y, f32, {4}};
  std::optional<Runtime> runtime;
};

TEST_F(QuarantineChoice, a_quarantined_implementation_is_refused_until_it_is_cleared) {
  enter("op/fast.kernel", "-");
  start();
  EXPECT_FALSE(fast_is_used());
  const Candidate refused = candidate("op/fast.kernel");
  EXPECT_EQ(refused.code, "health.quarantined");
  EXPECT_EQ(
      refused.reason,
      "a process ended inside it by SIGSEGV (2023-11-14); quarantined until 2023-11-21 or until "
      "'opmux quarantine clear op/fast.kernel'");
  const Result<size_t> cleared = runtime->health().clear_quarantine("op/fast.kernel");
  ASSERT_TRUE(cleared) << cleared.error().message();
  EXPECT_EQ(*cleared, 2u) << "its entry and its suspicion";
  EXPECT_TRUE(fast_is_used());
  EXPECT_EQ(candidate("op/fast.kernel").code, "");
  EXPECT_TRUE(store().read()->entries.empty()) << "removed for later processes too";
  EXPECT_EQ(store().read()->ends.at(0).suspects.size(), 1u);
}

TEST_F(QuarantineChoice, entries_of_another_build_and_expired_ones_do_not_apply) {
  enter("op/fast.kernel", "0123abcd");
  start();
  EXPECT_TRUE(fast_is_used());
  ASSERT_EQ(runtime->health().quarantine().entries.size(), 1u);
  EXPECT_FALSE(runtime->health().quarantine().entries[0].here);
  runtime.reset();
  enter("op/fast.kernel", "-", kToday - crash::kQuarantineSeconds - 1);
  start();
  EXPECT_TRUE(fast_is_used());
}

TEST_F(QuarantineChoice, a_reference_is_never_quarantined) {
  enter("op/plain.slow", "-");
  start();
  EXPECT_EQ(candidate("op/plain.slow").code, "");
}

TEST_F(QuarantineChoice, the_list_shows_entries_and_suspicions) {
  enter("op/fast.kernel", "-");
  start();
  const Quarantine all = runtime->health().quarantine();
  ASSERT_EQ(all.entries.size(), 1u);
  EXPECT_TRUE(all.entries[0].here);
  EXPECT_EQ(all.entries[0].how, "SIGSEGV");
  ASSERT_EQ(all.suspected.size(), 1u);
  EXPECT_EQ(all.suspected[0].process, 77u);
  EXPECT_EQ(to_json(all).find("{\"quarantined\":[{\"implementation\":\"op/fast.kernel\""), 0u);
  EXPECT_EQ(*runtime->health().clear_quarantine(), 3u);
  EXPECT_TRUE(runtime->health().quarantine().entries.empty());
  EXPECT_TRUE(runtime->health().quarantine().suspected.empty());
  EXPECT_EQ(*runtime->health().clear_quarantine("op/fast.kernel"), 0u);
}

TEST_F(QuarantineChoice, a_damaged_store_is_counted_and_quarantines_nothing) {
  enter("op/fast.kernel", "-");
  write_file(store().path(), "opmux quarantine 1\nquarantined 1 2 SIGSEGV - op/fast.kernel 00\n");
  start();
  EXPECT_TRUE(fast_is_used());
  EXPECT_EQ(runtime->health().crash_journal().damaged, 1u);
}

}  // namespace
}  // namespace opmux::test
