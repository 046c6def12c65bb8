#include "plugin/trust/elf_reader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>

#include <opmux/abi.h>

#include "base/crypto.hpp"
#include "plugin/read/bounded_read.hpp"
#include "plugin/trust/elf_image.hpp"

namespace opmux::plugin {
namespace {

constexpr std::string_view kQueryPrefix = "opmux_plugin_query_v";
constexpr size_t kLongestKnownName = 64;  // longest symbol name that has a meaning here
constexpr size_t kLongestBuildId = 64;

/// C library functions that a plugin must not export, because calls of other libraries could
/// resolve to them.
constexpr auto kInterposing = std::to_array<std::string_view>(
    {"malloc",        "calloc",   "realloc",       "free",
     "cfree",         "memalign", "aligned_alloc", "posix_memalign",
     "valloc",        "pvalloc",  "reallocarray",  "malloc_usable_size",
     "mmap",          "munmap",   "open",          "close",
     "read",          "write",    "dlopen",        "dlsym",
     "dlclose",       "fork",     "execve",        "exit",
     "_exit",         "abort",    "signal",        "sigaction",
     "pthread_create"});

/// The dynamic section. `last` holds the last value of each tag, as the dynamic loader takes it;
/// the others hold the offsets of all file names.
struct Dynamic {
  std::map<int64_t, uint64_t> last;
  std::vector<uint64_t> needed, run_path;

  uint64_t get(int64_t tag) const {
    const auto at = last.find(tag);
    return at == last.end() ? 0 : at->second;
  }
};

constexpr auto kTagsRead = std::to_array<int64_t>(
    {DT_STRTAB, DT_STRSZ, DT_SYMTAB, DT_SYMENT, DT_HASH, DT_GNU_HASH, DT_FLAGS_1, DT_SONAME});

Status take_entry(const Elf64_Dyn& entry, Dynamic& dynamic) {
  const int64_t tag = entry.d_tag;
  if (std::ranges::find(kTagsRead, tag) != kTagsRead.end()) dynamic.last[tag] = entry.d_un.d_val;
  if (tag == DT_NEEDED || tag == DT_FILTER || tag == DT_AUXILIARY) {
    dynamic.needed.push_back(entry.d_un.d_val);
  }
  if (tag == DT_RPATH || tag == DT_RUNPATH) dynamic.run_path.push_back(entry.d_un.d_val);
  if (dynamic.needed.size() + dynamic.run_path.size() <= kMostNamedFiles) return {};
  return bad_elf("malformed",
                 base::concat("the library needs more than ", kMostNamedFiles, " files"));
}

Result<Dynamic> read_dynamic(const ElfImage& image) {
  const std::vector<Elf64_Phdr> headers = image.headers(PT_DYNAMIC);
  if (headers.size() != 1) {
    return bad_elf("malformed", base::concat("the library has ", headers.size(),
                                             " dynamic sections instead of one"));
  }
  const std::span<const std::byte> bytes = image.from(headers.front().p_vaddr);
  Dynamic dynamic;
  for (uint64_t at = 0;; at += sizeof(Elf64_Dyn)) {
    const auto entry = value_at<Elf64_Dyn>(bytes, at);
    if (!entry) return bad_elf("malformed", "the dynamic section of the library is not terminated");
    if (entry->d_tag == DT_NULL) return dynamic;
    if (Status bad = take_entry(*entry, dynamic); !bad.ok()) return bad;
  }
}

/// The string table.
class Strings {
 public:
  static Result<Strings> read(const ElfImage& image, const Dynamic& dynamic) {
    Strings strings;
    const std::span<const std::byte> bytes = image.from(dynamic.get(DT_STRTAB));
    const uint64_t size = dynamic.get(DT_STRSZ);
    if (bytes.empty() || size == 0 || size > bytes.size()) {
      return bad_elf("malformed", "the library's string table is outside the file");
    }
    strings.text_ = {reinterpret_cast<const char*>(bytes.data()), size};
    return strings;
  }

  /// The name at an offset. Reads at most `limit` bytes; returns null data if the name is not
  /// terminated within them.
  std::string_view at(uint64_t offset, size_t limit) const {
    if (offset >= text_.size()) return {};
    const std::string_view rest = text_.substr(offset, limit + 1);
    const size_t end = rest.find('\0');
    return end == rest.npos ? std::string_view() : rest.substr(0, end);
  }
  bool inside(uint64_t offset) const { return offset < text_.size(); }
  std::string_view cut(uint64_t offset, size_t limit) const { return text_.substr(offset, limit); }

 private:
  std::string_view text_;
};

Result<std::string> file_name(const Strings& strings, uint64_t offset) {
  const std::string_view name = strings.at(offset, kLongestFileName);
  if (name.data() != nullptr && printable_text(name, Lines::one)) return std::string(name);
  return bad_elf("malformed", "the name of a needed file is not terminated printable text");
}

Status take_files(const Strings& strings, const Dynamic& dynamic, ElfFacts& facts) {
  for (const uint64_t offset : dynamic.needed) {
    Result<std::string> name = file_name(strings, offset);
    if (!name) return name.error();
    facts.needed.push_back(*std::move(name));
  }
  if (dynamic.last.contains(DT_SONAME)) {
    Result<std::string> name = file_name(strings, dynamic.get(DT_SONAME));
    if (!name) return name.error();
    facts.soname = *std::move(name);
  }
  for (const uint64_t offset : dynamic.run_path) {
    const Result<std::string> list = file_name(strings, offset);
    if (!list) return list.error();
    for (size_t at = 0; at <= list->size();) {
      const size_t end = std::min(list->find(':', at), list->size());
      facts.run_path.push_back(list->substr(at, end - at));
      at = end + 1;
    }
    if (facts.run_path.size() > kMostNamedFiles) {
      return bad_elf("malformed", "the library has too many run-path folders");
    }
  }
  return {};
}

/// Number of symbols that the GNU hash table reaches: up to the end of the last chain.
Result<uint64_t> count_by_gnu_hash(std::span<const std::byte> table) {
  struct Head {
    uint32_t buckets, first, bloom_words, shift;
  };
  const auto head = value_at<Head>(table, 0);
  const auto bad = [] {
    return bad_elf("malformed", "the library's symbol hash table is outside the file");
  };
  if (!head) return bad();
  const uint64_t buckets = sizeof(Head) + uint64_t{head->bloom_words} * sizeof(uint64_t);
  const uint64_t chains = buckets + uint64_t{head->buckets} * sizeof(uint32_t);
  if (chains > table.size()) return bad();
  uint32_t last = 0;
  for (uint32_t i = 0; i < head->buckets; ++i) {
    last = std::max(last, *value_at<uint32_t>(table, buckets + uint64_t{i} * sizeof(uint32_t)));
  }
  if (last == 0) return uint64_t{head->first};
  if (last < head->first) return bad();
  for (uint64_t symbol = last;; ++symbol) {
    const auto link = value_at<uint32_t>(table, chains + (symbol - head->first) * sizeof(uint32_t));
    if (!link) return bad();
    if ((*link & 1) != 0) return symbol + 1;
  }
}

Result<uint64_t> count_symbols(const ElfImage& image, const Dynamic& dynamic) {
  if (const uint64_t gnu = dynamic.get(DT_GNU_HASH); gnu != 0) {
    return count_by_gnu_hash(image.from(gnu));
  }
  const uint64_t plain = dynamic.get(DT_HASH);
  if (plain == 0) return uint64_t{0};  // no symbol can be found by name
  const auto count = value_at<uint32_t>(image.from(plain), sizeof(uint32_t));
  if (!count) return bad_elf("malformed", "the library's symbol hash table is outside the file");
  return uint64_t{*count};
}

bool is_exported(const Elf64_Sym& symbol) {
  const unsigned bind = ELF64_ST_BIND(symbol.st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS && bind != STB_LOCAL &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

/// The N of opmux_plugin_query_vN.
std::optional<uint32_t> query_version(std::string_view name) {
  if (!name.starts_with(kQueryPrefix)) return {};
  name.remove_prefix(kQueryPrefix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size() && name[0] != '0';
  return whole ? std::optional(number) : std::nullopt;
}

void add_once(std::vector<std::string>& names, std::string_view name, size_t limit) {
  if (names.size() >= limit || std::ranges::find(names, name) != names.end()) return;
  if (printable_text(name, Lines::one)) names.emplace_back(name);
}

void take_export(const Strings& strings, uint64_t offset, ElfFacts& facts) {
  const std::string_view name = strings.at(offset, kLongestKnownName);
  if (const auto version = query_version(name)) {
    const bool known = std::ranges::find(facts.query, *version) != facts.query.end();
    if (!known && facts.query.size() < kMostExportsKept) facts.query.push_back(*version);
  } else if (std::ranges::find(kInterposing, name) != kInterposing.end()) {
    add_once(facts.interposes, name, kInterposing.size());
  } else {
    ++facts.exports;
    add_once(facts.exported, name.data() == nullptr ? strings.cut(offset, kLongestKnownName) : name,
             kMostExportsKept);
  }
}

Status take_symbols(const ElfImage& image, const Strings& strings, const Dynamic& dynamic,
                    ElfFacts& facts) {
  const Result<uint64_t> count = count_symbols(image, dynamic);
  if (!count) return count.error();
  if (*count == 0) return {};
  const std::span<const std::byte> table = image.from(dynamic.get(DT_SYMTAB));
  if (dynamic.get(DT_SYMENT) != sizeof(Elf64_Sym) || *count > table.size() / sizeof(Elf64_Sym)) {
    return bad_elf("malformed", base::concat("the library's symbol table of ", *count,
                                             " entries is outside the file"));
  }
  for (uint64_t i = 0; i < *count; ++i) {
    const Elf64_Sym symbol = *value_at<Elf64_Sym>(table, i * sizeof(Elf64_Sym));
    if (!is_exported(symbol)) continue;
    if (!strings.inside(symbol.st_name)) {
      return bad_elf("malformed", "the name of a symbol is outside the string table");
    }
    take_export(strings, symbol.st_name, facts);
  }
  return {};
}

/// The linker's build id in one note segment; empty if there is none.
std::string build_id_in(std::span<const std::byte> notes) {
  const auto padded = [](uint64_t n) { return (n + 3) / 4 * 4; };
  uint64_t at = 0;
  while (const auto note = value_at<Elf64_Nhdr>(notes, at)) {
    at += sizeof(Elf64_Nhdr);
    const uint64_t body = at + padded(note->n_namesz), end = body + padded(note->n_descsz);
    if (end > notes.size()) return {};
    const bool gnu = note->n_namesz == 4 && std::memcmp(&notes[at], "GNU", 4) == 0;
    if (gnu && note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= kLongestBuildId) {
      return base::hex(notes.subspan(body, note->n_descsz));
    }
    at = end;
  }
  return {};
}

void take_headers(const ElfImage& image, ElfFacts& facts) {
  for (const Elf64_Phdr& notes : image.headers(PT_NOTE)) {
    if (facts.build_id.empty()) {
      facts.build_id = build_id_in(image.part(notes.p_offset, notes.p_filesz));
    }
  }
  // Without PT_GNU_STACK the dynamic loader assumes that stacks must be executable.
  const std::vector<Elf64_Phdr> stacks = image.headers(PT_GNU_STACK);
  facts.executable_stack = stacks.empty() || (stacks.back().p_flags & PF_X) != 0;
}

}  // namespace

std::string build_id_of_loaded(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fbase == nullptr) return {};
  // The ELF header and the program headers are part of the first segment, which is loaded.
  const auto* const base = static_cast<const std::byte*>(found.dli_fbase);
  const auto& header = *static_cast<const Elf64_Ehdr*>(found.dli_fbase);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(base + header.e_phoff);
  // A program that is not position-independent has absolute addresses.
  const std::byte* const start = header.e_type == ET_EXEC ? nullptr : base;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type != PT_NOTE) continue;
    std::string id = build_id_in({start + segments[i].p_vaddr, segments[i].p_memsz});
    if (!id.empty()) return id;
  }
  return {};
}

Result<ElfFacts> read_elf(std::span<const std::byte> file) {
  const Result<ElfImage> image = ElfImage::read(file);
  if (!image) return image.error();
  const Result<Dynamic> dynamic = read_dynamic(*image);
  if (!dynamic) return dynamic.error();
  if ((dynamic->get(DT_FLAGS_1) & DF_1_PIE) != 0) {
    return bad_elf("type", "the file is a program, not a library");
  }
  const Result<Strings> strings = Strings::read(*image, *dynamic);
  if (!strings) return strings.error();
  ElfFacts facts;
  take_headers(*image, facts);
  if ((dynamic->get(DT_FLAGS_1) & DF_1_INTERPOSE) != 0) {
    facts.interposes.emplace_back("everything (it was linked with -z interpose)");
  }
  if (Status bad = take_files(*strings, *dynamic, facts); !bad.ok()) return bad;
  if (Status bad = take_symbols(*image, *strings, *dynamic, facts); !bad.ok()) return bad;
  return facts;
}

namespace {

Status judge_query(const ElfFacts& facts, const std::string& path) {
  if (std::ranges::find(facts.query, uint32_t{OPMUX_ABI_MAJOR}) != facts.query.end()) return {};
  if (!facts.query.empty()) {
    return malformed("abi_major",
                     base::concat(path, " was built for plugin ABI version ", facts.query.front(),
                                  "; this build supports version ", OPMUX_ABI_MAJOR));
  }
  return malformed("no_query", base::concat(path, " exports no ", OPMUX_PLUGIN_SYMBOL,
                                            ": it is a library, but not an opmux plugin"));
}

Status judge_exports(const ElfFacts& facts, const std::string& path,
                     std::vector<Status>& warnings) {
  if (!facts.interposes.empty()) {
    return bad_elf("interposes", base::concat(path, " exports ", base::join(facts.interposes, ", "),
                                              "; a plugin may export only its query function"));
  }
  if (facts.executable_stack) {
    return bad_elf("stack", base::concat(path,
                                         " would make the stacks of this process executable; "
                                         "link it with -z noexecstack"));
  }
  if (facts.exports == 0) return {};
  const bool all = facts.exports <= facts.exported.size();
  warnings.push_back(bad_elf(
      "exports",
      base::concat(path, " exports ", facts.exports, " symbols besides its query function: ",
                   base::join(facts.exported, ", "), all ? "" : ", ...")));
  return {};
}

/// Checks that only trusted users can change a folder. A folder that does not exist is accepted if
/// only trusted users can create it.
Status judge_folder(const std::string& folder, std::string_view reason, std::string_view what,
                    const ElfRules& rules, std::vector<Status>& warnings) {
  const Result<OpenedPath> opened = open_folder(folder, rules.paths);
  const Status missing = opened ? Status() : opened.error();
  const bool harmless = missing.reason() == "plugin.path";
  if (opened ? opened->problems.empty() : harmless) return {};
  const Status& why = opened ? opened->problems.front() : missing;
  Status refused = bad_elf(reason, base::concat(what, " is not trusted: ", why.message()));
  if (rules.paths_enforced) return refused;
  warnings.push_back(std::move(refused));
  return {};
}

Status judge_run_path(const std::string& entry, const std::string& path, const ElfRules& rules,
                      std::vector<Status>& warnings) {
  const std::optional<std::string> beside = origin_folder(entry, path);
  const std::string& folder = beside ? *beside : entry;
  if (!folder.starts_with('/') || folder.find('$') != folder.npos) {
    return bad_elf("run_path", base::concat(path, " looks for libraries in '", entry,
                                            "'; only absolute folders and $ORIGIN are trusted"));
  }
  return judge_folder(folder, "run_path", base::concat("the run path '", entry, "' of ", path),
                      rules, warnings);
}

Status judge_needed(const std::string& name, const std::string& path, const ElfRules& rules,
                    std::vector<Status>& warnings) {
  if (name.find('/') == name.npos) return {};
  if (!name.starts_with('/') || name.find('$') != name.npos) {
    return bad_elf("needed", base::concat(path, " needs '", name,
                                          "', which is neither a plain name nor an absolute path"));
  }
  return judge_folder(std::filesystem::path(name).parent_path(), "needed",
                      base::concat("the library '", name, "' that ", path, " needs"), rules,
                      warnings);
}

}  // namespace

std::optional<std::string> origin_folder(std::string_view entry, const std::string& path) {
  for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
    if (!entry.starts_with(word)) continue;
    const std::string_view rest = entry.substr(word.size());
    if (!rest.empty() && !rest.starts_with('/')) continue;
    return base::concat(std::filesystem::path(path).parent_path().string(), rest);
  }
  return {};
}

Status judge_files(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                   std::vector<Status>& warnings) {
  for (const std::string& name : facts.needed) {
    if (Status bad = judge_needed(name, path, rules, warnings); !bad.ok()) return bad;
  }
  for (const std::string& entry : facts.run_path) {
    if (Status bad = judge_run_path(entry, path, rules, warnings); !bad.ok()) return bad;
  }
  return {};
}

Status judge_elf(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                 std::vector<Status>& warnings) {
  if (Status bad = judge_query(facts, path); !bad.ok()) return bad;
  if (Status bad = judge_exports(facts, path, warnings); !bad.ok()) return bad;
  return judge_files(facts, path, rules, warnings);
}

}  // namespace opmux::plugin
