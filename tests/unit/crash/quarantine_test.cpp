#include <signal.h>

#include <gtest/gtest.h>

#include "crash/journal_file.hpp"
#include "crash/quarantine_file.hpp"

namespace opmux::crash {
namespace {

constexpr int64_t kNow = 1'700'000'000;
const JournalName kA{1, false, "b1", "op/x.a"}, kB{2, false, "b1", "op/x.b"},
    kC{3, false, "b2", "op/y.c"}, kReference{4, true, "-", "op/reference.plain"};

JournalEnd killed_inside(std::vector<JournalName> names) {
  JournalEnd end;
  end.process = 42;
  end.boot = boot_id();
  end.in_flight = std::move(names);
  return end;
}

JournalEnd faulted_inside(std::optional<JournalName> name) {
  JournalEnd end = killed_inside({kA, kB, kC});
  end.signal = SIGSEGV;
  end.thread_known = true;
  end.culprit = std::move(name);
  return end;
}

TEST(Quarantine, takes_the_one_that_faulted_and_no_other) {
  QuarantineList list;
  const Judgement found = judge(faulted_inside(kB), kNow, list);
  EXPECT_EQ(found.kind, Judgement::Kind::blamed);
  EXPECT_EQ(found.how, "SIGSEGV");
  ASSERT_EQ(list.entries.size(), 1u);
  EXPECT_NE(list.find("op/x.b", "b1", kNow), nullptr);
  EXPECT_EQ(list.find("op/x.b", "b9", kNow), nullptr) << "another build is another implementation";
  EXPECT_EQ(list.find("op/x.b", "b1", kNow + kQuarantineSeconds), nullptr)
      << "expired after seven days";
  EXPECT_TRUE(list.ends.empty());
}

TEST(Quarantine, keeps_the_phase_in_the_file) {
  QuarantineList list;
  JournalEnd end = faulted_inside(kB);
  end.phase = Phase::plan;
  EXPECT_EQ(judge(end, kNow, list).phase, Phase::plan);
  EXPECT_NE(list.text().find(" SIGSEGV/plan b1 op/x.b "), std::string::npos) << list.text();
  QuarantineList read;
  ASSERT_TRUE(read.parse(list.text()));
  EXPECT_EQ(read.entries, list.entries);
  EXPECT_EQ(read.entries.at(0).how, "SIGSEGV");
  EXPECT_EQ(read.entries.at(0).phase, Phase::plan);
}

TEST(Quarantine, of_a_phase_of_a_later_version_applies) {
  QuarantineList list;
  list.entries.push_back({"op/x.b", "b1", "SIGSEGV/later", kNow, kNow + 10});
  QuarantineList read;
  ASSERT_TRUE(read.parse(list.text()));
  ASSERT_NE(read.find("op/x.b", "b1", kNow), nullptr);
  EXPECT_EQ(read.entries.at(0).how, "SIGSEGV/later");
}

TEST(Quarantine, a_fault_outside_implementations_blames_none) {
  QuarantineList list;
  EXPECT_EQ(judge(faulted_inside({}), kNow, list).kind, Judgement::Kind::elsewhere);
  EXPECT_TRUE(list.entries.empty());
  EXPECT_TRUE(list.ends.empty());
}

TEST(Quarantine, a_fault_in_an_unknown_thread_makes_suspects) {
  QuarantineList list;
  JournalEnd end = faulted_inside({});
  end.thread_known = false;
  EXPECT_EQ(judge(end, kNow, list).kind, Judgement::Kind::suspects);
  EXPECT_EQ(list.ends.size(), 1u);
}

TEST(Quarantine, a_reference_always_stays) {
  QuarantineList list;
  EXPECT_EQ(judge(faulted_inside(kReference), kNow, list).kind, Judgement::Kind::reference);
  EXPECT_EQ(judge(killed_inside({kReference}), kNow, list).kind, Judgement::Kind::clean);
  EXPECT_TRUE(list.entries.empty());
}

TEST(Quarantine, one_kill_makes_suspects_and_the_second_takes_the_only_common_one) {
  QuarantineList list;
  EXPECT_EQ(judge(killed_inside({kA, kB}), kNow, list).kind, Judgement::Kind::suspects);
  EXPECT_TRUE(list.entries.empty());
  EXPECT_EQ(judge(killed_inside({kB, kC}), kNow + 5, list).kind, Judgement::Kind::alone);
  ASSERT_EQ(list.entries.size(), 1u);
  EXPECT_EQ(list.entries[0].id, "op/x.b");
  EXPECT_EQ(list.entries[0].how, "suspect");
}

TEST(Quarantine, two_in_common_are_both_suspected_still) {
  QuarantineList list;
  judge(killed_inside({kA, kB}), kNow, list);
  EXPECT_EQ(judge(killed_inside({kA, kB}), kNow, list).kind, Judgement::Kind::suspects);
  EXPECT_TRUE(list.entries.empty());
}

TEST(Quarantine, another_build_of_the_same_is_nothing_in_common) {
  QuarantineList list;
  judge(killed_inside({kA}), kNow, list);
  JournalName rebuilt = kA;
  rebuilt.build = "b2";
  EXPECT_EQ(judge(killed_inside({rebuilt}), kNow, list).kind, Judgement::Kind::suspects);
}

TEST(Quarantine, a_process_without_a_journal_ended_cleanly) {
  QuarantineList list;
  JournalEnd end = faulted_inside(kA);
  end.idle = true;
  EXPECT_EQ(judge(end, kNow, list).kind, Judgement::Kind::clean);
}

TEST(Quarantine, a_list_reads_back_as_it_was_written_and_loses_only_damaged_lines) {
  QuarantineList list;
  judge(faulted_inside(kA), kNow, list);
  judge(faulted_inside(kC), kNow, list);
  judge(killed_inside({kA, kB}), kNow, list);
  const std::string text = list.text();
  QuarantineList read;
  ASSERT_TRUE(read.parse(text));
  EXPECT_EQ(read.entries, list.entries);
  EXPECT_EQ(read.ends, list.ends);
  std::string changed = text;
  changed[text.find("op/x.a")] = 'q';
  ASSERT_TRUE(read.parse(changed));
  EXPECT_EQ(read.damaged, 1u);
  EXPECT_EQ(read.entries.size(), 1u);
  EXPECT_EQ(read.ends.size(), 1u);
  EXPECT_FALSE(read.parse("opmux quarantine 9\n"));
}

TEST(Quarantine, a_book_has_the_same_bytes_as_those_of_earlier_versions) {
  const std::string stored =
      "opmux quarantine 1\n"
      "quarantined 1700000000 1700604800 SIGSEGV b1 op/x.b ad88f188938cc74a\n"
      "end 1700000000 42 op/x.a@b1,op/y.c@b2 1eec39befb67a71a\n";
  QuarantineList book;
  ASSERT_TRUE(book.parse(stored));
  EXPECT_EQ(book.damaged, 0u);
  EXPECT_NE(book.find("op/x.b", "b1", kNow), nullptr);
  ASSERT_EQ(book.ends.size(), 1u);
  EXPECT_EQ(book.ends[0].suspects.size(), 2u);
  EXPECT_EQ(book.text(), stored);
}

TEST(Quarantine, a_cause_of_two_words_reads_back) {
  QuarantineList book, read;
  JournalEnd end = faulted_inside(kA);
  end.signal = 40;  // a real-time signal, which has no name
  judge(end, kNow, book);
  ASSERT_TRUE(read.parse(book.text()));
  const Quarantined* const entry = read.find("op/x.a", "b1", kNow);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->how, "signal 40");
}

TEST(Quarantine, a_build_with_odd_characters_reads_back) {
  EXPECT_EQ(plain_build("a b,c@d\\e"), "a_b_c_d_e");
  JournalName name;
  std::string line = line_of({7, true, "a\\b", "op/x.a"});
  line.pop_back();
  ASSERT_TRUE(parse_name(line, name));
  EXPECT_EQ(name.number, 7u);
  EXPECT_TRUE(name.reference);
  EXPECT_EQ(name.build, "a_b");
  EXPECT_EQ(name.id, "op/x.a");
}

TEST(Quarantine, a_clock_set_back_does_not_extend_a_quarantine) {
  QuarantineList list;
  constexpr int64_t kYear = 365 * 24 * 3600;
  judge(faulted_inside(kA), kNow + kYear, list);
  list.forget_old(kNow);
  EXPECT_NE(list.find("op/x.a", "b1", kNow), nullptr);
  EXPECT_EQ(list.find("op/x.a", "b1", kNow + kQuarantineSeconds), nullptr);
  list.forget_old(kNow + kYear);
  EXPECT_TRUE(list.entries.empty());
}

}  // namespace
}  // namespace opmux::crash
