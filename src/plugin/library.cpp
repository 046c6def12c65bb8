#include "plugin/library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/text.hpp"
#include "plugin/bounded_read.hpp"
#include "plugin/mapped_file.hpp"

namespace opmux::plugin {
namespace {

std::string hex(const unsigned char* bytes, size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

/// The linker's build id in one segment of notes, or empty.
std::string build_id_in(const char* notes, size_t size) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  size_t at = 0;
  while (size - at >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    at += sizeof(note);
    const size_t name = padded(note.n_namesz), body = padded(note.n_descsz);
    if (name > size - at || body > size - at - name) return {};
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes + at, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      return hex(reinterpret_cast<const unsigned char*>(notes + at + name), note.n_descsz);
    }
    at += name + body;
  }
  return {};
}

struct Search {
  uintptr_t address;
  std::string build_id;
};

bool holds(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const uintptr_t start = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address - start < segment.p_memsz) return true;
  }
  return false;
}

int look_at(dl_phdr_info* object, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  if (!holds(*object, search.address)) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // The system's loader gives addresses as numbers.
    const uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    const auto* notes = reinterpret_cast<const char*>(start);  // NOLINT(performance-no-int-to-ptr)
    search.build_id = build_id_in(notes, segment.p_memsz);
  }
  return 1;
}

std::string build_id_of(opmux_plugin_query_fn query, const std::string& path) {
  Search search{reinterpret_cast<uintptr_t>(query), {}};
  dl_iterate_phdr(look_at, &search);
  if (!search.build_id.empty()) return search.build_id;
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) return {};
  return base::concat("file-", file.st_size, "-", file.st_mtim.tv_sec, "-", file.st_mtim.tv_nsec);
}

/// Why a library has no query function of this version.
Status no_query(void* handle, const std::string& path) {
  for (const int other : {2, 3, 4, 5, 6, 7, 8, 9}) {
    const std::string symbol = base::concat("opmux_plugin_query_v", other);
    if (dlsym(handle, symbol.c_str()) == nullptr) continue;
    return malformed("abi_major",
                     base::concat(path, " was built for version ", other,
                                  " of the plugin contract, this is version ", OPMUX_ABI_MAJOR));
  }
  return malformed("no_query", base::concat(path, " exports no ", OPMUX_PLUGIN_SYMBOL,
                                            ": it is a library, but no opmux plugin"));
}

}  // namespace

Result<Library> open_library(const std::string& path, int checked) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* said = dlerror();
    return malformed("open", base::concat("cannot open ", path, ": ", said ? said : "no reason"));
  }
  auto* query = reinterpret_cast<opmux_plugin_query_fn>(dlsym(handle, OPMUX_PLUGIN_SYMBOL));
  if (query == nullptr) return no_query(handle, path);
  if (checked >= 0 && !lies_in(reinterpret_cast<const void*>(query), checked)) {
    return malformed("swapped", base::concat(path, " is not the file that was checked"));
  }
  return Library{handle, query, build_id_of(query, path)};
}

}  // namespace opmux::plugin
