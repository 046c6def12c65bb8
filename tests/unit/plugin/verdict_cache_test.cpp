#include "plugin/probe/verdict_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "private_folder.hpp"

namespace opmux::plugin {
namespace {

namespace fs = std::filesystem;

ProbeResult passed(const std::string& name = "acme") {
  ProbeResult verdict;
  verdict.manifest.name = name;
  return verdict;
}

ProbeResult failed_with(const std::string& code) { return {code, "so it is", "query", 0, 0, {}}; }

/// A unique context for each test, because all caches of a process share their entries.
std::string new_context() {
  static int count = 0;
  return std::string(60, 'c') + std::to_string(1000 + ++count);
}

fs::path only_entry(const std::string& folder) {
  return fs::directory_iterator(folder + "/verdicts")->path();
}

class VerdictCacheTest : public testing::Test {
 protected:
  const std::string digest_ = std::string(64, 'd');
  PrivateFolder folder_;
  std::string store_ = folder_.at("store");
};

TEST_F(VerdictCacheTest, an_entry_is_for_one_file_one_context_and_one_time) {
  const std::string entry = to_entry("d1", "c1", 100, failed_with("probe.crash"));
  EXPECT_EQ(parse_entry(entry, "d1", "c1", 1'000'000'000).value(), failed_with("probe.crash"));
  EXPECT_FALSE(parse_entry(entry, "d2", "c1", 200));
  EXPECT_FALSE(parse_entry(entry, "d1", "c2", 200));
  const std::string hang = to_entry("d1", "c1", 100, failed_with("probe.hang"));
  EXPECT_TRUE(parse_entry(hang, "d1", "c1", 200));
  EXPECT_FALSE(parse_entry(hang, "d1", "c1", 100 + 25 * 3600)) << "the machine may have been busy";
}

TEST_F(VerdictCacheTest, an_entry_has_the_same_bytes_as_those_of_earlier_versions) {
  const std::string stored =
      "opmux-verdict-entry 1\n"
      "a97c7657f56c637fd595488b26fb0e0948939917517b2decbf6f4681a4a1d254\n"
      "d1\nc1\n100\nopmux-verdict 1\ncode\tprobe.crash\tso\\tit is\nwhere\tquery\t11\t16\nend\n";
  const ProbeResult crash{"probe.crash", "so\tit is", "query", 11, 16, {}};
  EXPECT_EQ(parse_entry(stored, "d1", "c1", 200).value(), crash);
  EXPECT_EQ(to_entry("d1", "c1", 100, crash), stored);
}

TEST_F(VerdictCacheTest, any_changed_byte_of_an_entry_is_found) {
  const std::string entry = to_entry("d1", "c1", 100, passed());
  for (size_t at = 0; at < entry.size(); ++at) {
    std::string changed = entry;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(parse_entry(changed, "d1", "c1", 200)) << at;
    EXPECT_FALSE(parse_entry(entry.substr(0, at), "d1", "c1", 200)) << at;
  }
}

TEST_F(VerdictCacheTest, outlives_the_process_in_a_private_folder) {
  const std::string same = new_context();
  VerdictCache(store_, same).keep(digest_, passed());
  struct stat facts{};
  ASSERT_EQ(stat((store_ + "/verdicts").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  const fs::path entry = only_entry(store_);
  const std::string other = new_context();
  // Simulates a new process: the same entry under a context that this process has not seen.
  const auto text = to_entry(digest_, other, 100, passed("fresh"));
  std::ofstream(store_ + "/verdicts/" + digest_ + "-" + other.substr(0, 16)) << text;
  const std::optional<ProbeResult> found = VerdictCache(store_, other).find(digest_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.name, "fresh");
  EXPECT_TRUE(fs::exists(entry));
}

TEST_F(VerdictCacheTest, a_damaged_entry_is_a_counted_miss) {
  const std::string mine = new_context();
  VerdictCache cache(store_, mine);
  std::ofstream(store_ + "/verdicts/" + digest_ + "-" + mine.substr(0, 16)) << "garbage";
  EXPECT_EQ(cache.find(digest_), std::nullopt);
  EXPECT_EQ(cache.corrupt(), 1u);
}

TEST_F(VerdictCacheTest, does_not_cache_results_that_do_not_depend_on_the_file) {
  VerdictCache cache(store_, new_context());
  for (const char* code : {"probe.missing", "probe.spawn", "plugin.open", "plugin.swapped"}) {
    cache.keep(digest_, failed_with(code));
    EXPECT_EQ(cache.find(digest_), std::nullopt) << code;
  }
  cache.keep("", passed());
  EXPECT_EQ(cache.find(""), std::nullopt);
}

TEST_F(VerdictCacheTest, works_from_memory_if_nothing_can_be_written_and_logs_it) {
  VerdictCache cache("/proc/nowhere", new_context());
  EXPECT_EQ(cache.folder_state().reason(), "store.folder");
  cache.keep(digest_, passed());
  ASSERT_TRUE(cache.find(digest_));
  EXPECT_EQ(VerdictCache("", new_context()).folder_state().reason(), "store.folder");
}

TEST_F(VerdictCacheTest, refuses_a_folder_that_others_can_write_to) {
  fs::create_directories(store_ + "/verdicts");
  fs::permissions(store_ + "/verdicts", fs::perms::all);
  EXPECT_EQ(VerdictCache(store_, new_context()).folder_state().reason(), "store.folder");
}

}  // namespace
}  // namespace opmux::plugin
