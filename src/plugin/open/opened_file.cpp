#include "plugin/open/opened_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "base/crypto.hpp"
#include "base/locks.hpp"
#include "base/system/files.hpp"
#include "base/system/process.hpp"
#include "base/text.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

/// Device and inode of a mapped file.
struct Identity {
  unsigned major = 0, minor = 0;
  uint64_t number = 0;
  bool operator==(const Identity&) const = default;
};

/// The files that are mapped at two addresses.
std::array<std::optional<Identity>, 2> identities(std::array<uintptr_t, 2> addresses) {
  std::array<std::optional<Identity>, 2> found;
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen("/proc/self/maps", "re"), fclose);
  if (maps == nullptr) return found;
  std::array<char, 4096> line{};
  bool continued = false;  // a path may be longer than the buffer
  while (fgets(line.data(), line.size(), maps.get()) != nullptr) {
    const bool starts = !continued;
    continued = std::char_traits<char>::find(line.data(), line.size(), '\n') == nullptr;
    uint64_t from = 0, to = 0;
    Identity identity;
    if (!starts || sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %*4s %*x %x:%x %" SCNu64, &from,
                          &to, &identity.major, &identity.minor, &identity.number) != 5) {
      continue;
    }
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (addresses[i] >= from && addresses[i] < to) found[i] = identity;
    }
  }
  return found;
}

}  // namespace

bool lies_in(const void* address, int descriptor) {
  constexpr size_t kPage = 4096;
  void* page = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (page == MAP_FAILED) return false;
  const auto found =
      identities({reinterpret_cast<uintptr_t>(address), reinterpret_cast<uintptr_t>(page)});
  munmap(page, kPage);
  return found[0] && found[1] && found[0]->number != 0 && *found[0] == *found[1];
}

namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

Status cannot(std::string_view what) {
  return malformed("sealed", base::concat("cannot ", what,
                                          " in memory: ", std::generic_category().message(errno)));
}

int make_file(const std::string& path) {
  const std::string name = "opmux:" + path.substr(path.rfind('/') + 1).substr(0, 64);
  const int made = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  // Kernels before 6.3 do not know MFD_EXEC; there every memory file is executable.
  if (made >= 0 || errno != EINVAL) return made;
  return memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

Result<base::Descriptor> copy_of(int descriptor, const std::string& path, uint64_t size,
                                 const std::string& digest) {
  const Result<FileBytes> bytes = read_bytes(descriptor, size);
  if (!bytes) return bytes.error();
  base::Descriptor copy(make_file(path));
  if (!copy) return cannot("create a file");
  const std::span<const std::byte> all = bytes->view();
  if (!base::write_all(copy.get(), {reinterpret_cast<const char*>(all.data()), all.size()})) {
    return cannot("write a file");
  }
  if (fcntl(copy.get(), F_ADD_SEALS, kSeals) != 0) return cannot("seal a file");
  const Result<FileBytes> sealed = read_bytes(copy.get(), size);
  if (!sealed) return sealed.error();
  if (base::sha256_hex(sealed->view()) != digest) {
    return Status(Code::failed, "trust.changed",
                  base::concat(path, " was changed while it was checked"));
  }
  return copy;
}

}  // namespace

LibraryFile SealedFile::as(const CheckedFile& original) const {
  LibraryFile all{"", file.get()};
  for (size_t i = 0; i < libraries.size(); ++i) {
    all.libraries.push_back({original.libraries[i].name, "", libraries[i].get()});
  }
  return all;
}

Result<SealedFile> sealed_copy(const CheckedFile& file) {
  Result<base::Descriptor> own =
      copy_of(file.descriptor.get(), file.path, file.identity.size, file.own_digest);
  if (!own) return own.error();
  SealedFile sealed{*std::move(own), {}};
  for (const CheckedLibrary& library : file.libraries) {
    Result<base::Descriptor> copy =
        copy_of(library.descriptor.get(), library.path, library.identity.size, library.digest);
    if (!copy) return copy.error();
    sealed.libraries.push_back(*std::move(copy));
  }
  return sealed;
}

std::string build_id_of(const CheckedFile& file) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (!file.elf.build_id.empty()) return file.elf.build_id;
  const FileIdentity& was = file.identity;
  return base::concat("file-", was.size, "-", was.modified_ns / kSecond, "-",
                      was.modified_ns % kSecond);
}

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

/// A deferred file may be opened long after it was checked. A file that was moved or renamed is
/// still the same.
Status still_as_checked(int descriptor, const std::string& path, const FileIdentity& checked) {
  const Result<FileIdentity> now = identity_of(descriptor);
  if (now && now->size == checked.size && now->modified_ns == checked.modified_ns) return {};
  return {Code::failed, "trust.changed",
          base::concat(path, " was written to since it was checked")};
}

/// The descriptors that stay open, and the file as open_library() gets it.
struct Kept {
  SealedFile descriptors;
  LibraryFile as;
};

/// Duplicates the descriptor of a file that was not changed since it was checked.
Result<base::Descriptor> duplicate(int descriptor, const std::string& path,
                                   const FileIdentity& checked) {
  if (Status bad = still_as_checked(descriptor, path, checked); !bad.ok()) return bad;
  constexpr int kFirst = 3;  // 0 to 2 may be closed and reopened by the program
  base::Descriptor copy(fcntl(descriptor, F_DUPFD_CLOEXEC, kFirst));
  if (copy) return copy;
  return malformed("open", base::concat("cannot keep ", path,
                                        " open: ", std::generic_category().message(errno)));
}

Result<Kept> to_be_kept(const CheckedFile& file, SealedFile sealed) {
  if (sealed) {
    LibraryFile as = sealed.as(file);
    return Kept{std::move(sealed), std::move(as)};
  }
  Kept kept{{}, library_file(file)};
  Result<base::Descriptor> own = duplicate(file.descriptor.get(), file.path, file.identity);
  if (!own) return own.error();
  kept.as.descriptor = own->get();
  kept.descriptors.file = *std::move(own);
  for (size_t i = 0; i < file.libraries.size(); ++i) {
    const CheckedLibrary& library = file.libraries[i];
    if (!library.descriptor) continue;
    Result<base::Descriptor> copy =
        duplicate(library.descriptor.get(), library.path, library.identity);
    if (!copy) return copy.error();
    kept.as.libraries[i].descriptor = copy->get();
    kept.descriptors.libraries.push_back(*std::move(copy));
  }
  return kept;
}

Result<OpenedFile> open_now(const CheckedFile& file, SealedFile sealed) {
  Result<Kept> kept = to_be_kept(file, std::move(sealed));
  if (!kept) return kept.error();
  const base::ThreadStateGuard guard;
  const Result<Library> library = open_library(kept->as);
  for (base::Descriptor& opened : kept->descriptors.libraries) (void)opened.release();
  if (library || library.error().reason() != "plugin.open") {
    (void)kept->descriptors.file.release();
  }
  if (!library) return library.error();
  const auto close = [library = *library](void*) {
    const base::ThreadStateGuard while_closing;
    close_library(library);
  };
  return OpenedFile{library->query, build_id_of(file),
                    std::shared_ptr<void>(library->object.handle, close)};
}

}  // namespace

Result<OpenedFile> open_once(const CheckedFile& file, SealedFile sealed) {
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
