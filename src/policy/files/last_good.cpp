#include "policy/files/last_good.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/crypto.hpp"
#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitle = "opmux last known good 1";

Status cannot(std::string_view what, const std::string& path, std::string_view why) {
  return {Code::unavailable, "config.last_good", base::concat(what, " ", path, ": ", why)};
}

std::string digest_of(std::string_view text) {
  return base::sha256_hex(std::as_bytes(std::span(text)));
}

/// Title line, SHA-256 of the rest, then per file a line with its size and path, and its bytes.
std::string pack(const std::vector<FileText>& files) {
  std::string body;
  for (const FileText& file : files) {
    body += base::concat(file.text.size(), " ", file.path, "\n", file.text, "\n");
  }
  return base::sealed_text(kTitle, body);
}

bool unpack(std::string_view text, std::vector<FileText>& files) {
  std::string_view rest = base::body_of_sealed(kTitle, text).value_or("");
  while (!rest.empty()) {
    std::string_view path = base::take_until(rest, '\n');
    base::RecordFields fields(base::take_until(path, ' '));
    const auto size = fields.integer<size_t>();
    if (!fields.good() || path.empty() || size >= rest.size()) return false;
    files.push_back({std::string(path), std::string(rest.substr(0, size))});
    rest.remove_prefix(size + 1);
  }
  return !files.empty();
}

}  // namespace

LastGood::LastGood(std::string folder, const std::string& config) : folder_(std::move(folder)) {
  constexpr size_t kDigits = 16;
  if (folder_.empty()) return;
  path_ = folder_ + "/policy-" + digest_of(fs::absolute(config).native()).substr(0, kDigits);
}

Result<LastGood::Kept> LastGood::keep(const std::vector<FileText>& files) const {
  if (path_.empty()) return cannot("cannot store", "the policy", "there is no state folder");
  const std::string text = pack(files);
  if (const Status made = base::make_private_folder(folder_); !made.ok()) {
    return Status(Code::unavailable, "config.last_good", std::string(made.message()));
  }
  // Files are replaced atomically, so they can be compared without the lock. Of many processes that
  // load a policy at the same time, only the first ones then need the lock.
  const auto unchanged = [&] {
    const auto stored = stored_text();
    return stored && *stored == text;
  };
  if (unchanged()) return Kept::yes;
  const base::FileLock lock(path_ + ".lock", 0);
  if (!lock && errno == EWOULDBLOCK) return Kept::busy;
  if (!lock) return cannot("cannot lock", path_, std::strerror(errno));
  if (unchanged()) return Kept::yes;
  if (!base::replace_file(path_, text, 0600)) {
    return cannot("cannot write", path_, std::strerror(errno));
  }
  return Kept::yes;
}

Result<std::string> LastGood::stored_text() const {
  struct stat found{};
  if (::lstat(path_.c_str(), &found) != 0)
    return cannot("cannot read", path_, std::strerror(errno));
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) {
    return cannot("cannot use", path_, "it is not a regular file of this user");
  }
  auto stored = read_policy_file(path_);
  if (!stored) return stored.error();
  return std::move(stored->text);
}

Result<std::vector<FileText>> LastGood::read() const {
  if (path_.empty()) return cannot("cannot read", "the stored policy", "there is no state folder");
  const auto stored = stored_text();
  if (!stored) return stored.error();
  std::vector<FileText> files;
  if (!unpack(*stored, files)) return cannot("cannot use", path_, "it is damaged");
  return files;
}

base::WokenJob::Run LastGoodWriter::retrying() {
  return [this, busy_since = std::optional<uint64_t>()](uint64_t now_ns) mutable {
    if (store_waiting()) {
      busy_since.reset();
      return base::Maintenance::kNever;
    }
    if (!busy_since) busy_since = now_ns;
    if (now_ns - *busy_since >= kBusyForLongNs) {
      log_failure(base::concat("another process holds the lock of ", place_.path(),
                               "; the policy in force will be stored there when the lock is "
                               "free"));
    }
    return now_ns + kAgainNs;
  };
}

void LastGoodWriter::store(const std::vector<FileText>& files) {
  waiting_.with([&](Waiting& waiting) { waiting.files = files; });
  if (!store_waiting()) retry_.wake();
}

bool LastGoodWriter::store_waiting() {
  Status failure;
  const bool busy = waiting_.with([&](Waiting& waiting) {
    if (!waiting.files) return false;
    const auto kept = place_.keep(*waiting.files);
    if (kept && *kept == LastGood::Kept::busy) return true;
    waiting.files.reset();
    if (kept) waiting.logged = false;
    if (!kept) failure = kept.error();
    return false;
  });
  if (!failure.ok()) log_failure(failure.message());
  return !busy;
}

void LastGoodWriter::log_failure(std::string_view why) {
  const bool logged =
      waiting_.with([](Waiting& waiting) { return std::exchange(waiting.logged, true); });
  // The runtime works without stored files, so repeated failures are logged only once.
  if (!logged) log_.announce(Level::warning, "policy.not_kept", [&] { return std::string(why); });
}

}  // namespace opmux::policy
