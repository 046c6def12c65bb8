#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "crash/journal_part.hpp"

#include <gtest/gtest.h>

#include "base/system/files.hpp"
#include "crash/journal_file.hpp"
#include "crash/journal_reader.hpp"
#include "temporary_folder.hpp"

namespace opmux::crash {
namespace {

using test::TemporaryFolder;

const JournalName kFast{5, false, "abc123", "rms_norm/simd.fast"};
const JournalName kPlain{6, true, "-", "rms_norm/reference.plain"};

std::string journal_bytes(const std::string& path) {
  return base::read_whole(path, 1 << 24).value();
}

/// The journal of a process that is inside both implementations, with one thread each.
std::string busy_journal(const TemporaryFolder& folder, JournalFile** kept = nullptr) {
  auto made = JournalFile::create(folder.path(), 1000);
  EXPECT_TRUE(made);
  EXPECT_TRUE((*made)->append(std::vector{kFast, kPlain}).ok());
  (*made)->slots()[0].marks[0].store(uint64_t{77} << kNumberBits | 5);
  (*made)->slots()[3].marks[0].store(kColdBit | 9);
  (*made)->slots()[3].running[0].store(6);
  std::string bytes = journal_bytes((*made)->path());
  static std::vector<std::unique_ptr<JournalFile>> files;  // Kept open, as a process does.
  files.push_back(*std::move(made));
  if (kept != nullptr) *kept = files.back().get();
  return bytes;
}

TEST(Journal, shows_the_implementation_of_every_thread) {
  const TemporaryFolder folder;
  const auto end = read_journal(busy_journal(folder));
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(end->process, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(end->started, 1000);
  EXPECT_EQ(end->boot, boot_id());
  EXPECT_EQ(end->signal, 0u);
  EXPECT_FALSE(end->culprit);
  EXPECT_EQ(end->in_flight, (std::vector{kFast, kPlain}));
}

TEST(Journal, names_the_implementation_of_the_thread_that_faulted) {
  const TemporaryFolder folder;
  JournalFile* file = nullptr;
  busy_journal(folder, &file);
  file->header().fault_number.store(5);
  file->header().fault_known.store(1);
  file->header().fault_signal.store(SIGSEGV);
  const auto end = read_journal(journal_bytes(file->path()));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->culprit, kFast);
  EXPECT_TRUE(end->thread_known);
  EXPECT_EQ(name_of_end(end->signal), "SIGSEGV");
  EXPECT_EQ(name_of_end(kEndedByExit), "exit");
}

TEST(Journal, cut_off_anywhere_is_damaged_or_lacks_names_only) {
  const TemporaryFolder folder;
  const std::string bytes = busy_journal(folder);
  for (size_t size = 0; size <= bytes.size(); size += size < kJournalMapped - 200 ? 997 : 1) {
    const auto end = read_journal(std::string_view(bytes).substr(0, size));
    if (size < kJournalMapped) {
      ASSERT_FALSE(end) << size;
      EXPECT_EQ(end.error().reason(), "journal.damaged");
      continue;
    }
    ASSERT_TRUE(end) << size;
    EXPECT_EQ(end->in_flight.size() + end->unnamed, 2u);
  }
}

TEST(Journal, of_another_version_or_with_changed_bytes_is_refused_with_a_reason) {
  const TemporaryFolder folder;
  std::string bytes = busy_journal(folder);
  std::string changed = bytes;
  changed[30] = static_cast<char>(changed[30] ^ 4);
  EXPECT_EQ(read_journal(changed).error().reason(), "journal.damaged");
  EXPECT_EQ(read_journal("something else").error().reason(), "journal.damaged");

  JournalHeader header{};
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  header.version = 0;
  header.check = check_of(header);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof header);
  EXPECT_EQ(read_journal(bytes).error().reason(), "journal.version");
}

TEST(Journal, a_torn_name_does_not_hide_others) {
  const TemporaryFolder folder;
  const std::string bytes = busy_journal(folder) + "7 other abc rms_norm/x.torn 00";
  const auto end = read_journal(bytes + "\n" + line_of({7, false, "b", "rms_norm/x.whole"}));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->in_flight.size(), 2u);
}

TEST(Journal, is_gone_after_a_clean_end_and_marks_may_still_be_made) {
  const TemporaryFolder folder;
  JournalFile* file = nullptr;
  busy_journal(folder, &file);
  file->remove();
  EXPECT_NE(::access(file->path().c_str(), F_OK), 0);
  file->slots()[0].clear();
  EXPECT_EQ(file->slots()[0].innermost(), 0u);
}

TEST(Journal, of_the_parent_is_left_alone_by_a_forked_child) {
  const TemporaryFolder folder;
  JournalFile* file = nullptr;
  busy_journal(folder, &file);
  const pid_t child = ::fork();
  if (child == 0) {
    file->leave_to_parent();
    const bool kept = file->slots()[0].innermost() == 5;
    file->slots()[0].clear();
    file->slots()[9].marks[0].store(5);
    ::_exit(kept ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child has separate slots";
  EXPECT_EQ(file->slots()[0].innermost(), 5u);
  EXPECT_EQ(file->slots()[9].innermost(), 0u);
}

TEST(HazardSlot, the_deepest_level_is_the_innermost) {
  HazardSlot slot;
  slot.marks[0].store(5);
  slot.marks[1].store(kColdBit | 4);
  EXPECT_EQ(slot.innermost(), 5u)
      << "reading an operator's state is not a call of an implementation";
  slot.running[1].store(6);
  EXPECT_EQ(slot.innermost(), 6u);
  slot.marks[2].store(uint64_t{3} << kNumberBits | 7);
  EXPECT_EQ(slot.innermost(), 7u);
}

TEST(HazardSlot, has_the_phase_beside_the_number) {
  HazardSlot slot;
  slot.running[0].store(word_of(6, Phase::plan));
  EXPECT_EQ(number_of(slot.innermost()), 6u);
  EXPECT_EQ(phase_of(slot.innermost()), Phase::plan);
  slot.running[0].store(word_of(6, Phase::run));
  EXPECT_EQ(slot.innermost(), 6u);
  slot.running[1].store(word_of(0, Phase::plan));
  EXPECT_EQ(slot.innermost(), 6u) << "a part without a number is not named";
  EXPECT_EQ(phase_of(77u << kNumberBits | 6), Phase::run) << "a phase of a later version";
}

TEST(JournalPart, has_one_number_for_the_life_of_the_process) {
  const JournalPart part = plugin_part("/opt/my plugins/a b@c.so", "d1");
  EXPECT_EQ(part.id, "plugin:a_b_c.so");
  const uint32_t number = note_part(part);
  EXPECT_GE(number, kFirstPart);
  EXPECT_EQ(note_part(part), number);
  EXPECT_NE(note_part(plugin_part("/opt/a b@c.so", "d2")), number) << "another file";
  EXPECT_NE(note_part(backend_part("a_b_c.so", "d1", false)), number);
  EXPECT_LT(number_in_marks(kFirstPart - 2), kFirstPart);
  EXPECT_EQ(number_in_marks(kFirstPart - 1), 0u) << "implementations do not take these numbers";
}

}  // namespace
}  // namespace opmux::crash
