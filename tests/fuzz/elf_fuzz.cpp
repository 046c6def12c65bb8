// The ELF reader on arbitrary bytes: accepted files must satisfy its postconditions.
#include <cstdlib>

#include "plugin/trust/elf_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto facts = opmux::plugin::read_elf(std::as_bytes(std::span(data, size)));
  if (!facts) return facts.error().reason().starts_with("elf.") ? 0 : (std::abort(), 0);
  const bool bounded = facts->exported.size() <= opmux::plugin::kMostExportsKept &&
                       facts->needed.size() <= opmux::plugin::kMostNamedFiles &&
                       facts->build_id.size() <= 128;
  if (!bounded) std::abort();
  return 0;
}
