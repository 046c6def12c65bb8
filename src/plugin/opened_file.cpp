#include "plugin/opened_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <system_error>
#include <vector>

#include "base/fork_guarded.hpp"
#include "base/lazy.hpp"
#include "base/text.hpp"
#include "base/thread_state.hpp"
#include "plugin/bounded_read.hpp"

namespace opmux::plugin {
namespace {

/// An opened file, by the digest of its contents.
struct Open {
  opmux_plugin_query_fn query = nullptr;
  std::string build_id;
  std::weak_ptr<void> code;
};

struct Opened {
  std::map<std::string, Open> by_digest;
  std::vector<std::shared_ptr<void>> kept;
};

base::ForkGuarded<Opened>& opened() {
  static constinit base::Lazy<base::ForkGuarded<Opened>> all;
  return all.get();
}

std::string build_id_of(const CheckedFile& file) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (!file.elf.build_id.empty()) return file.elf.build_id;
  const FileIdentity& was = file.identity;
  return base::concat("file-", was.size, "-", was.modified_ns / kSecond, "-",
                      was.modified_ns % kSecond);
}

/// A deferred file may be opened long after it was checked. A file that was moved or renamed is
/// still the same.
Status still_as_checked(const CheckedFile& file) {
  const Result<FileIdentity> now = identity_of(file.descriptor.get());
  if (now && now->size == file.identity.size && now->modified_ns == file.identity.modified_ns) {
    return {};
  }
  return {Code::failed, "trust.changed",
          base::concat(file.path, " was written to since it was checked")};
}

/// The descriptor that stays open, and the file as open_library() gets it.
struct Kept {
  base::Descriptor descriptor;
  LibraryFile as;
};

Result<Kept> to_be_kept(const CheckedFile& file, base::Descriptor sealed) {
  if (sealed) {
    const int number = sealed.get();
    return Kept{std::move(sealed), {"", number}};
  }
  if (Status bad = still_as_checked(file); !bad.ok()) return bad;
  constexpr int kFirst = 3;  // 0 to 2 may be closed and reopened by the program
  Kept kept;
  kept.descriptor.reset(fcntl(file.descriptor.get(), F_DUPFD_CLOEXEC, kFirst));
  if (!kept.descriptor) {
    return malformed("open", base::concat("cannot keep ", file.path,
                                          " open: ", std::generic_category().message(errno)));
  }
  kept.as = {file.path, kept.descriptor.get(), file.beside};
  return kept;
}

Result<OpenedFile> open_now(const CheckedFile& file, base::Descriptor sealed) {
  Result<Kept> kept = to_be_kept(file, std::move(sealed));
  if (!kept) return kept.error();
  const base::ThreadStateGuard guard;
  const Result<Library> library = open_library(kept->as);
  if (library || library.error().reason() != "plugin.open") (void)kept->descriptor.release();
  if (!library) return library.error();
  const auto close = [library = *library](void*) {
    const base::ThreadStateGuard while_closing;
    close_library(library);
  };
  return OpenedFile{library->query, build_id_of(file),
                    std::shared_ptr<void>(library->handle, close)};
}

}  // namespace

Result<OpenedFile> open_once(const CheckedFile& file, base::Descriptor sealed) {
  return opened().with([&](Opened& all) -> Result<OpenedFile> {
    if (!file.digest.empty()) {
      const auto known = all.by_digest.find(file.digest);
      if (known != all.by_digest.end()) {
        if (auto code = known->second.code.lock()) {
          return OpenedFile{known->second.query, known->second.build_id, std::move(code)};
        }
      }
    }
    Result<OpenedFile> fresh = open_now(file, std::move(sealed));
    if (fresh && !file.digest.empty()) {
      all.by_digest[file.digest] = {fresh->query, fresh->build_id, fresh->code};
    }
    return fresh;
  });
}

void keep_for_ever(std::shared_ptr<void> code) {
  opened().with([&](Opened& all) { all.kept.push_back(std::move(code)); });
}

}  // namespace opmux::plugin
