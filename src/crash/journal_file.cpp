#include "crash/journal_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::crash {

uint64_t check_of(const JournalHeader& header) {
  uint64_t sum = 0xcbf29ce484222325u;  // FNV-1a
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  for (size_t i = 0; i < offsetof(JournalHeader, check); ++i) {
    sum = (sum ^ bytes[i]) * 0x100000001b3u;
  }
  return sum;
}

std::string lock_path(const std::string& run_folder) { return run_folder + "/lock"; }

std::string boot_id() {
  const base::Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[sizeof(JournalHeader::boot) - 1];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : 0;
  std::string_view id(text, size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(base::take_until(id, '\n'));
}

std::string plain_build(std::string_view build) {
  std::string plain(build.empty() ? "-" : build.substr(0, 128));
  std::ranges::replace_if(
      plain, [](char c) { return c <= ' ' || c > '~' || c == ',' || c == '@' || c == '\\'; }, '_');
  return plain;
}

std::string line_of(const JournalName& name) {
  return base::checked_line(base::record<' '>(name.number, name.reference ? "reference" : "other",
                                              plain_build(name.build), name.id));
}

bool parse_name(std::string_view line, JournalName& name) {
  const auto text = base::text_of_checked(line);
  if (!text) return false;
  base::RecordFields fields(*text, ' ');
  name.number = fields.integer<uint32_t>();
  name.reference = fields.text() == "reference";
  name.build = fields.text();
  name.id = fields.text();
  return fields.good() && fields.left() == 0 && !name.build.empty() && !name.id.empty();
}

namespace {

Status cannot(std::string_view what, const std::string& path, int why) {
  return {Code::unavailable, "journal.file",
          base::concat("cannot ", what, " ", path, ": ", std::strerror(why))};
}

/// A name that was never used before: process ids are reused, so the name also has the time and a
/// counter.
std::string new_name() {
  static std::atomic<uint32_t> count{0};
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return base::concat("journal-", ::getpid(), "-", now.tv_sec, "-", now.tv_nsec, "-", ++count);
}

}  // namespace

Result<std::unique_ptr<JournalFile>> JournalFile::create(const std::string& folder, int64_t now) {
  std::unique_ptr<JournalFile> made(new JournalFile);
  const std::string name = new_name();
  const std::string aside = folder + "/new-" + name;
  made->path_ = folder + "/" + name;
  made->file_.reset(::open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made->file_) return cannot("make", aside, errno);
  Status status = made->fill(now);
  if (status.ok() && std::rename(aside.c_str(), made->path_.c_str()) != 0) {
    status = cannot("name", made->path_, errno);
  }
  if (status.ok()) return made;
  ::unlink(aside.c_str());
  return status;
}

Status JournalFile::fill(int64_t now) {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return cannot("lock", path_, errno);
  // Allocate all blocks now: writing to a mapped page without a block would raise SIGBUS later.
  if (const int why = ::posix_fallocate(file_.get(), 0, kJournalMapped); why != 0) {
    return cannot("make room for", path_, why);
  }
  void* const memory =
      ::mmap(nullptr, kJournalMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) return cannot("map", path_, errno);
  header_ = new (memory) JournalHeader{};
  slots_ = reinterpret_cast<HazardSlot*>(static_cast<char*>(memory) + kJournalHeaderSize);
  kJournalMagic.copy(header_->magic, sizeof header_->magic);
  header_->version = kJournalVersion;
  header_->header_size = kJournalHeaderSize;
  header_->slot_size = sizeof(HazardSlot);
  header_->slot_count = kJournalSlots;
  header_->levels = kMarkLevels;
  header_->process = static_cast<uint32_t>(::getpid());
  header_->started = now;
  boot_id().copy(header_->boot, sizeof header_->boot - 1);
  header_->check = check_of(*header_);
  size_ = kJournalMapped;
  return {};
}

HazardSlot* JournalFile::take_slot() {
  for (size_t word = 0; word < taken_.size(); ++word) {
    uint64_t taken = taken_[word].load(std::memory_order_relaxed);
    while (taken != UINT64_MAX) {
      const int bit = std::countr_one(taken);
      if (taken_[word].compare_exchange_weak(taken, taken | uint64_t{1} << bit)) {
        return &slots_[word * 64 + static_cast<size_t>(bit)];
      }
    }
  }
  return nullptr;
}

void JournalFile::give_back(HazardSlot* slot) {
  slot->clear();
  const auto index = static_cast<size_t>(slot - slots_);
  taken_[index / 64].fetch_and(~(uint64_t{1} << index % 64));
}

Status JournalFile::append(std::span<const JournalName> names) {
  std::string lines;
  for (const JournalName& name : names) lines += line_of(name);
  std::string_view rest = lines;
  uint64_t at = size_;
  while (!rest.empty()) {
    const ssize_t done = ::pwrite(file_.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const int why = done == 0 ? ENOSPC : errno;
      // The next append overwrites a partial write.
      [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(size_));
      return cannot("write names to", path_, why);
    }
    rest.remove_prefix(static_cast<size_t>(done));
    at += static_cast<uint64_t>(done);
  }
  size_ = at;
  return {};
}

void JournalFile::remove() {
  if (!file_) return;
  header_->idle.store(1, std::memory_order_release);
  ::unlink(path_.c_str());
  file_.reset();
}

void JournalFile::leave_to_parent() {
  file_.reset();
  void* const copy =
      ::mmap(nullptr, kJournalMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  std::memcpy(copy, static_cast<const void*>(header_), kJournalMapped);
  ::mremap(copy, kJournalMapped, kJournalMapped, MREMAP_MAYMOVE | MREMAP_FIXED,
           static_cast<void*>(header_));
}

}  // namespace opmux::crash
