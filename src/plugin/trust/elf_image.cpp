#include "plugin/trust/elf_image.hpp"

#include "plugin/trust/elf_reader.hpp"

namespace opmux::plugin {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr uint16_t kMachine = EM_PPC64;
#endif

constexpr uint64_t kPage = 4096;  // smallest page size of all supported machines

}  // namespace

Status ElfImage::take_header() {
  const auto ident = value_at<std::array<unsigned char, EI_NIDENT>>(file_, 0);
  if (!ident || std::memcmp(ident->data(), ELFMAG, SELFMAG) != 0) {
    return bad_elf("magic", "the file is not an ELF library: wrong magic number");
  }
  if ((*ident)[EI_CLASS] != ELFCLASS64) {
    return bad_elf("class", "the file is not a 64-bit library");
  }
  if ((*ident)[EI_DATA] != ELFDATA2LSB) {
    return bad_elf("machine", "the library was built for the other byte order");
  }
  const auto header = value_at<Elf64_Ehdr>(file_, 0);
  if (!header) return bad_elf("truncated", "the file ends inside its header");
  if (header->e_machine != kMachine) {
    return bad_elf("machine",
                   base::concat("the library was built for ELF machine ", header->e_machine,
                                "; this process is of machine ", kMachine));
  }
  if (header->e_type != ET_DYN) {
    return bad_elf("type", base::concat("the file has ELF type ", header->e_type,
                                        "; a shared library has type ", ET_DYN));
  }
  header_ = *header;
  return {};
}

Status ElfImage::take_segments() {
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 ||
      header_.e_phnum > kMostSegments) {
    return bad_elf("malformed", base::concat("the library has ", header_.e_phnum,
                                             " program headers of ", header_.e_phentsize,
                                             " bytes; 1 to ", kMostSegments, " are supported"));
  }
  uint64_t end = 0;  // end of the pages of the segments so far
  for (uint64_t i = 0; i < header_.e_phnum; ++i) {
    // e_phoff may be close to UINT64_MAX, so it is compared before it is used.
    const auto tail = header_.e_phoff <= file_.size() ? file_.subspan(header_.e_phoff)
                                                      : std::span<const std::byte>();
    const auto header = value_at<Elf64_Phdr>(tail, i * sizeof(Elf64_Phdr));
    if (!header) return bad_elf("truncated", "the file ends inside its program headers");
    headers_.push_back(*header);
    if (header->p_type != PT_LOAD) continue;
    if (header->p_filesz > header->p_memsz || header->p_memsz > INT64_MAX ||
        header->p_vaddr > INT64_MAX || header->p_vaddr / kPage * kPage < end) {
      return bad_elf("malformed", "segments of the library overlap or are out of order");
    }
    if (header->p_filesz != 0 && part(header->p_offset, header->p_filesz).empty()) {
      return bad_elf("truncated", "a segment of the library extends beyond the end of the file");
    }
    end = (header->p_vaddr + header->p_memsz + kPage - 1) / kPage * kPage;
  }
  return {};
}

Result<ElfImage> ElfImage::read(std::span<const std::byte> file) {
  ElfImage image;
  image.file_ = file;
  if (Status bad = image.take_header(); !bad.ok()) return bad;
  if (Status bad = image.take_segments(); !bad.ok()) return bad;
  return image;
}

std::vector<Elf64_Phdr> ElfImage::headers(uint32_t type) const {
  std::vector<Elf64_Phdr> found;
  for (const Elf64_Phdr& header : headers_) {
    if (header.p_type == type) found.push_back(header);
  }
  return found;
}

std::span<const std::byte> ElfImage::part(uint64_t offset, uint64_t size) const {
  if (offset > file_.size() || size > file_.size() - offset) return {};
  return file_.subspan(offset, size);
}

std::span<const std::byte> ElfImage::from(uint64_t address) const {
  for (const Elf64_Phdr& header : headers_) {
    if (header.p_type != PT_LOAD || address < header.p_vaddr) continue;
    const uint64_t inside = address - header.p_vaddr;
    if (inside >= header.p_filesz) continue;
    return part(header.p_offset + inside, header.p_filesz - inside);
  }
  return {};
}

}  // namespace opmux::plugin
