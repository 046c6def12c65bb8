#include "plugin/trust/checked_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/crypto.hpp"
#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "plugin/trust/dependencies.hpp"
#include "plugin/trust/elf_reader.hpp"
#include "plugin/trust/signature.hpp"
#include "plugin/trust/trusted_path.hpp"

namespace opmux {

std::string_view name_of(Trust trust) noexcept {
  constexpr std::array<std::string_view, 3> kWords{"any", "digest", "signed"};
  return kWords.at(static_cast<size_t>(trust));
}

}  // namespace opmux

namespace opmux::plugin {
namespace {

Status unreadable() {
  return {Code::failed, "trust.read",
          base::concat("cannot read the file: ", std::generic_category().message(errno))};
}

Status check_signature(const TrustSettings& settings, CheckedFile& file) {
  if (settings.trust != Trust::signed_only) return {};
  Result<std::string> signer =
      find_signer(file.path, file.digest, settings.keyring,
                  settings.day.empty() ? base::today() : settings.day, PathRules::of_process());
  if (!signer) return signer.error();
  file.signer = *std::move(signer);
  return {};
}

ElfRules elf_rules(const TrustSettings& settings) {
  return {PathRules::of_process(), settings.paths == TrustSettings::Paths::enforced};
}

/// Whether the contents of the libraries matter. Reading those of an installation at each start
/// would take long.
bool reads_libraries(const TrustSettings& settings) {
  return !settings.installed || settings.trust != Trust::any || settings.sealed;
}

/// Opens the file. Problems with its path refuse it or become warnings, depending on the settings.
Status take_path(const std::string& path, const TrustSettings& settings, CheckedFile& file) {
  Result<OpenedPath> opened = open_file(path, PathRules::of_process());
  if (!opened) return opened.error();
  const bool enforced = settings.paths == TrustSettings::Paths::enforced;
  if (enforced && !opened->problems.empty()) return opened->problems.front();
  file.descriptor = std::move(opened->descriptor);
  file.path = std::move(opened->real_path);
  file.warnings = std::move(opened->problems);
  return {};
}

Status check_digest(const TrustSettings& settings, const CheckedFile& file) {
  if (settings.trust != Trust::digest) return {};
  if (file.digest.empty()) {
    return {Code::unsupported, "trust.unsupported",
            "this opmux was built without digests (OPMUX_SIGNATURES)"};
  }
  if (std::ranges::find(settings.digests, file.digest) != settings.digests.end()) return {};
  return {Code::invalid_argument, "trust.digest",
          base::concat("the SHA-256 of ", file.path, " is ", file.digest,
                       ", which is not among the ", settings.digests.size(), " allowed digests")};
}

Status take_libraries(const TrustSettings& settings, CheckedFile& file) {
  const LibraryRules rules{elf_rules(settings), settings.max_bytes, reads_libraries(settings)};
  auto libraries = check_libraries(file.elf, file.path, rules, file.warnings);
  if (!libraries) return libraries.error();
  file.libraries = *std::move(libraries);
  return {};
}

Status take_contents(const TrustSettings& settings, CheckedFile& file) {
  const Result<CheckedBytes> read =
      read_checked(file.descriptor.get(), file.path, settings.max_bytes);
  if (!read) return read.error();
  file.identity = read->identity;
  file.own_digest = base::sha256_hex(read->bytes.view());
  const Result<ElfFacts> elf = read_elf(read->bytes.view());
  if (elf) file.elf = *elf;
  // A problem of a library is reported after those of the plugin itself.
  const Status libraries = take_libraries(settings, file);
  file.digest = digest_with(file.own_digest, file.libraries);
  if (libraries.ok()) {
    if (Status bad = check_digest(settings, file); !bad.ok()) return bad;
    if (Status bad = check_signature(settings, file); !bad.ok()) return bad;
  }
  if (!elf) return elf.error();
  Status bad = judge_elf(file.elf, file.path, elf_rules(settings), file.warnings);
  return bad.ok() ? libraries : bad;
}

}  // namespace

TrustSettings trust_settings(const PluginOptions& options) {
  TrustSettings settings;
  settings.trust = options.trust;
  settings.keyring = options.keyring;
  settings.digests = options.digests;
  for (std::string& digest : settings.digests) {
    std::ranges::transform(digest, digest.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  settings.sealed = options.sealed || options.trust == Trust::signed_only;
  settings.max_bytes = options.max_bytes;
  return settings;
}

TrustSettings installation_settings(const PluginOptions& options) {
  PluginOptions own = options;
  if (own.trust == Trust::signed_only) own.trust = Trust::any;
  TrustSettings settings = trust_settings(own);
  settings.installed = true;
  return settings;
}

Result<FileIdentity> identity_of(int descriptor) {
  struct stat info{};
  if (fstat(descriptor, &info) != 0) return unreadable();
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return FileIdentity{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                      nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

Result<FileBytes> read_bytes(int descriptor, uint64_t size) {
  FileBytes bytes{std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size]), size};
  if (bytes.data == nullptr) {
    return Status(Code::resource, "trust.read", base::concat("no memory for ", size, " bytes"));
  }
  size_t at = 0;
  while (at < size) {
    const ssize_t got = pread(descriptor, bytes.data.get() + at, size - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0)
      return Status(Code::failed, "trust.read", "the file was truncated while it was read");
    at += static_cast<size_t>(got);
  }
  return bytes;
}

Result<CheckedBytes> read_checked(int descriptor, const std::string& path, uint64_t most) {
  const Result<FileIdentity> before = identity_of(descriptor);
  if (!before) return before.error();
  if (before->size > most) {
    return Status(
        Code::invalid_argument, "trust.size",
        base::concat(path, " has ", before->size, " bytes; the limit is ", most, " bytes"));
  }
  Result<FileBytes> bytes = read_bytes(descriptor, before->size);
  if (!bytes) return bytes.error();
  const Result<FileIdentity> after = identity_of(descriptor);
  if (!after || *after != *before) {
    return Status(Code::failed, "trust.changed", base::concat(path, " changed while it was read"));
  }
  return CheckedBytes{*before, *std::move(bytes)};
}

Result<CheckedFile> check_file(const std::string& path, const TrustSettings& settings) {
  CheckedFile file;
  file.sealed = settings.sealed;
  if (Status bad = take_path(path, settings, file); !bad.ok()) return bad;
  if (Status bad = take_contents(settings, file); !bad.ok()) return bad;
  return file;
}

std::string_view check_of(std::string_view reason) {
  for (const std::string_view word : {"plugin.path", "trust.relative", "trust.owner", "trust.mode",
                                      "trust.link", "trust.shared"}) {
    if (reason == word) return "path";
  }
  if (reason.starts_with("trust.")) return "contents";
  const bool library =
      reason.starts_with("elf.") || reason == "plugin.no_query" || reason == "plugin.abi_major";
  return library ? "library" : "";
}

}  // namespace opmux::plugin
