#include "status/status_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/line_records.hpp"

namespace opmux::status_file {
namespace {

StatusPage sample_page() {
  StatusPage page{.mark = {"pid:[1]", 77}, .process = {}};
  page.process.pid = 4711;
  page.process.name = "a name\twith\nodd \\ characters";
  page.process.started = 1000;
  RuntimeState& own = page.process.runtimes.emplace_back();
  own.number = 2;
  own.since = 1001;
  own.version = "1.2.3";
  own.mode = "hot_reload";
  own.frozen = true;
  own.generation = 12;
  own.policy_name = "policy.yaml";
  own.policy_digest = "abc";
  own.policy_version = 3;
  own.policies_refused = 1;
  own.last_refusal = "policy.yaml:3:1: no such key\n  did you mean 'op'?";
  own.sources = {{"file", "policy.yaml", 2}};
  own.health = "degraded";
  own.backends = {{"simd", "healthy", ""}, {"opencl", "unavailable", "no device"}};
  own.breakers = {{"copy/a.x", "all calls", "open", "by hand", 1}};
  own.operators = {{"copy",
                    {{"copy/a.x", "default", 150, 9, 1, 2, 3, 4, "", "", 6},
                     {"copy/b.x", "vendor", -1, 0, 0, 0, 0, 0, "policy.denied", "by x", 0}}},
                   {"none", {}}};
  own.choices = {{"copy", "H % 16 == 0", {"copy/a.x", "copy/b.x"}, "copy/c.x", "not met", 11},
                 {"copy", "always", {}, "", "", 12}};
  own.cells = {{"copy", "y=f32 x=f32", "H=8 rows=2", 2, 640, 123'456, 7}};
  own.proposals = {{"copy", "copy/b.x", "copy/a.x", "f32 H=8 rows=2 threads=1 eager", 1.25, 1.125,
                    1.5, 24, 1'790'000'000, false, "the policy says no"}};
  own.without_candidates = {{"copy", "H > 64", "copy/a.x cannot run here: off", true}};
  own.left_out = 5;
  return page;
}

std::string text_of(const StatusPage& page) {
  return status_file_text(status_file_body(page), 123456, 8);
}

TEST(StatePageText, reads_back_as_itself) {
  const StatusPage page = sample_page();
  const auto read = parse_status_file(text_of(page));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(status_file_body(*read), status_file_body(page));
  EXPECT_EQ(read->mark.pid_namespace, "pid:[1]");
  EXPECT_EQ(read->process.name, page.process.name);
  const RuntimeState& own = read->process.runtimes.at(0);
  EXPECT_EQ(own.written, 123456);
  EXPECT_EQ(own.updates, 8u);
  EXPECT_EQ(own.last_refusal, page.process.runtimes[0].last_refusal);
  ASSERT_EQ(own.proposals.size(), 1u);
  EXPECT_EQ(own.proposals[0].speed, 1.25);
  EXPECT_EQ(own.proposals[0].why_not, "the policy says no");
  EXPECT_THAT(to_json(own.proposals), testing::HasSubstr(R"("speed":1.25,"low":1.125,"high":1.5)"));
  ASSERT_EQ(own.cells.size(), 1u);
  EXPECT_EQ(own.cells[0].dims, "H=8 rows=2");
  EXPECT_EQ(own.cells[0].threads, 2);
  EXPECT_EQ(own.cells[0].time_ns, 123'456u);
  EXPECT_EQ(own.cells[0].error_ns, 7u);
  ASSERT_EQ(own.without_candidates.size(), 1u);
  EXPECT_EQ(own.without_candidates[0].when, "H > 64");
  EXPECT_TRUE(own.without_candidates[0].allowed);
  EXPECT_EQ(own.calls("copy/a.x"), 9u);
  EXPECT_EQ(own.calls("copy/z.x"), 0u);
  EXPECT_EQ(own.operators.at(0).calls(), 9u);
  EXPECT_EQ(own.operators.at(0).implementations.at(0).decided_each_time, 6u);
  EXPECT_EQ(own.operators.at(0).implementations.at(1).priority, -1);
  EXPECT_THAT(own.choices.at(0).accepted, testing::ElementsAre("copy/a.x", "copy/b.x"));
  EXPECT_EQ(own.left_out, 5u);
}

TEST(StatePageText, is_damaged_wherever_it_is_cut_or_changed) {
  const std::string text = text_of(sample_page());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto cut = parse_status_file(text.substr(0, i));
    ASSERT_FALSE(cut) << i;
    EXPECT_EQ(cut.error().reason(), "state_page.damaged");
    std::string changed = text;
    changed[i] ^= 1;
    EXPECT_FALSE(parse_status_file(changed)) << i;
  }
}

TEST(StatePageText, with_only_a_title_is_damaged) {
  for (const char* text : {"opmux state page", ""}) {
    const auto read = parse_status_file(base::checked_line(text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().reason(), "state_page.damaged");
  }
}

TEST(StatePageText, of_another_version_is_refused_by_name) {
  const auto read = parse_status_file(base::checked_line("opmux state page 2 1 1\n"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "state_page.version");
  EXPECT_THAT(std::string(read.error().message()), testing::HasSubstr("reads version 1"));
}

TEST(StatePageText, ignores_records_and_fields_of_later_writers) {
  const std::string body = "process\t7\tname\t5\tpid:[1]\t9\tmore\nnovelty\t1\nruntime\t1\n";
  const auto read = parse_status_file(status_file_text(body, 1, 1));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->process.pid, 7);
  EXPECT_EQ(read->process.runtimes.at(0).mode, "");
}

TEST(StatePageText, reads_implementations_of_earlier_writers) {
  const std::string body =
      "operator\tcopy\nimplementation\tcopy/a.x\tdefault\t150\t9\t1\t2\t3\t4\tcode\twhy\n";
  const auto read = parse_status_file(status_file_text(body, 1, 1));
  ASSERT_TRUE(read) << read.error().message();
  const ImplementationPageState& own =
      read->process.runtimes.at(0).operators.at(0).implementations.at(0);
  EXPECT_EQ(own.reason, "why");
  EXPECT_EQ(own.decided_each_time, 0u);
}

TEST(StatePageText, ignores_spaces_between_ids) {
  const auto read =
      parse_status_file(status_file_text("choice\tcopy\talways\t1\t\t\t  copy/a.x  \n", 1, 1));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_THAT(read->process.runtimes.at(0).choices.at(0).accepted,
              testing::ElementsAre("copy/a.x"));
}

TEST(StatePageText, refuses_words_in_the_place_of_numbers) {
  for (const char* body : {"process\tx\n", "implementation\ta/b.c\n", "process\t7\tname\\\n"}) {
    const auto read = parse_status_file(status_file_text(body, 1, 1));
    ASSERT_FALSE(read) << body;
    EXPECT_EQ(read.error().reason(), "state_page.damaged");
  }
}

TEST(StatePageText, counts_records_that_do_not_fit) {
  StatusPage page = sample_page();
  RuntimeState& own = page.process.runtimes[0];
  own.choices.assign(5, {"copy", std::string(1 << 20, 'x'), {"copy/a.x"}, "", "", 1});
  const std::string text = text_of(page);
  EXPECT_LE(text.size(), kMaxStatePage);
  const auto read = parse_status_file(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process.runtimes[0].choices.size(), 3u);
  EXPECT_EQ(read->process.runtimes[0].left_out, 5u + 2u);
}

TEST(StatePageText, is_written_as_json) {
  const std::string json = to_json(sample_page().process);
  EXPECT_THAT(json, testing::HasSubstr("\"pid\":4711"));
  EXPECT_THAT(json, testing::HasSubstr("\"decided_each_time\":6"));
  EXPECT_THAT(json, testing::HasSubstr("\"accepted\":[\"copy/a.x\",\"copy/b.x\"]"));
  EXPECT_EQ(to_json(std::vector<ProcessState>{}), "{\"processes\":[]}");
}

}  // namespace
}  // namespace opmux::status_file
