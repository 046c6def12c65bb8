#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/trust/checked_file.hpp"
#include "plugin/trust/elf_reader.hpp"

namespace opmux::plugin {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

std::string library(const std::string& name) {
  std::ifstream file(std::string(OPMUX_TEST_ELF) + "/" + name + ".so", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<ElfFacts> read(const std::string& bytes) {
  return read_elf(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

/// The file with one value replaced.
template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  return bytes;
}

Elf64_Ehdr header_of(const std::string& bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

/// File offset of the first program header of a type.
size_t place_of(const std::string& bytes, uint32_t type) {
  const Elf64_Ehdr header = header_of(bytes);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + at, sizeof(segment));
    if (segment.p_type == type) return at;
  }
  return 0;
}

/// File offset of the value of a dynamic entry.
size_t dynamic_value(const std::string& bytes, int64_t tag) {
  Elf64_Phdr segment;
  std::memcpy(&segment, bytes.data() + place_of(bytes, PT_DYNAMIC), sizeof(segment));
  for (size_t at = segment.p_offset;; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, bytes.data() + at, sizeof(entry));
    if (entry.d_tag == tag) return at + offsetof(Elf64_Dyn, d_un);
  }
}

std::string reason(const std::string& bytes) { return std::string(read(bytes).error().reason()); }

TEST(ElfReader, reads_the_description_of_a_library) {
  for (const char* name : {"plain", "sysv"}) {
    const auto facts = read(library(name));
    ASSERT_TRUE(facts) << facts.error().to_string();
    EXPECT_THAT(facts->query, ElementsAre(1u)) << name;
    EXPECT_THAT(facts->needed, Contains(StartsWith("libc.so")));
    EXPECT_THAT(facts->run_path, IsEmpty());
    EXPECT_THAT(facts->interposes, IsEmpty());
    EXPECT_FALSE(facts->executable_stack);
  }
}

TEST(ElfReader, refuses_other_machines_and_non_libraries) {
  const std::string good = library("plain");
  EXPECT_EQ(reason(""), "elf.magic");
  EXPECT_EQ(reason("#!/bin/sh"), "elf.magic");
  EXPECT_EQ(reason(good.substr(0, 40)), "elf.truncated");
  EXPECT_EQ(reason(with(good, EI_CLASS, char{ELFCLASS32})), "elf.class");
  EXPECT_EQ(reason(with(good, EI_DATA, char{ELFDATA2MSB})), "elf.machine");
  EXPECT_EQ(reason(with(good, offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_S390})), "elf.machine");
  EXPECT_EQ(reason(with(good, offsetof(Elf64_Ehdr, e_type), uint16_t{ET_EXEC})), "elf.type");
}

TEST(ElfReader, refuses_impossible_counts_and_offsets) {
  const std::string good = library("plain");
  EXPECT_EQ(reason(with(good, offsetof(Elf64_Ehdr, e_phnum), uint16_t{0xffff})), "elf.malformed");
  EXPECT_EQ(reason(with(good, offsetof(Elf64_Ehdr, e_phoff), UINT64_MAX - 8)), "elf.truncated");
  EXPECT_EQ(reason(with(good, offsetof(Elf64_Ehdr, e_phentsize), uint16_t{8})), "elf.malformed");
  const size_t load = place_of(good, PT_LOAD);
  EXPECT_EQ(reason(with(good, load + offsetof(Elf64_Phdr, p_offset), UINT64_MAX)), "elf.truncated");
  EXPECT_EQ(reason(with(good, load + offsetof(Elf64_Phdr, p_memsz), uint64_t{1} << 40)),
            "elf.malformed")
      << "it overlaps the next one";
  for (const int64_t tag : {int64_t{DT_STRTAB}, int64_t{DT_STRSZ}, int64_t{DT_SYMTAB}}) {
    EXPECT_EQ(reason(with(good, dynamic_value(good, tag), uint64_t{1} << 50)), "elf.malformed")
        << tag;
  }
  EXPECT_EQ(reason(with(good, dynamic_value(good, DT_NEEDED), uint64_t{1} << 50)), "elf.malformed");
  const std::string sysv = library("sysv");
  EXPECT_EQ(reason(with(sysv, dynamic_value(sysv, DT_HASH), uint64_t{12})), "elf.malformed")
      << "a count beyond the header";
}

TEST(ElfReader, a_part_of_a_library_is_never_taken_for_all_of_it) {
  const std::string good = library("plain");
  Elf64_Phdr last{};
  const Elf64_Ehdr header = header_of(good);
  size_t end = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    std::memcpy(&last, good.data() + header.e_phoff + i * sizeof(last), sizeof(last));
    if (last.p_type == PT_LOAD) end = std::max<size_t>(end, last.p_offset + last.p_filesz);
  }
  for (size_t size = 0; size < end; size += 7) EXPECT_FALSE(read(good.substr(0, size))) << size;
  EXPECT_TRUE(read(good.substr(0, end)));
}

std::string verdict(const std::string& name, TrustSettings settings = {}) {
  const auto file = check_file(std::string(OPMUX_TEST_ELF) + "/" + name + ".so", settings);
  return std::string(file.error().reason());
}

TEST(ElfRules, refuse_a_library_that_would_replace_malloc) {
  EXPECT_EQ(verdict("plain"), "");
  EXPECT_EQ(verdict("interposing"), "elf.interposes");
  EXPECT_EQ(verdict("interposer"), "elf.interposes");
  EXPECT_THAT(read(library("interposing"))->interposes,
              testing::UnorderedElementsAre("malloc", "free"));
}

TEST(ElfRules, warn_of_other_exports) {
  const auto file = check_file(OPMUX_TEST_ELF "/chatty.so", {});
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_THAT(file->warnings, SizeIs(1));
  EXPECT_EQ(file->warnings[0].reason(), "elf.exports");
  EXPECT_THAT(file->warnings[0].message(), HasSubstr("acme_answer"));
}

TEST(ElfRules, refuse_executable_stacks) { EXPECT_EQ(verdict("stack"), "elf.stack"); }

TEST(ElfRules, trust_only_absolute_folders_and_the_own_one_in_run_paths) {
  EXPECT_EQ(verdict("absolute"), "");
  EXPECT_EQ(verdict("old_absolute"), "");
  EXPECT_EQ(verdict("origin"), "");
  EXPECT_EQ(verdict("relative"), "elf.run_path");
  EXPECT_EQ(verdict("nowhere"), "elf.run_path") << "an empty entry is the working directory";
  EXPECT_EQ(verdict("platform"), "elf.run_path");
  EXPECT_EQ(verdict("temporary"), "elf.run_path") << "any user could create that folder";
  EXPECT_EQ(verdict("temporary", {.paths = TrustSettings::Paths::reported}), "");
}

TEST(ElfRules, a_sealed_copy_may_have_libraries_beside_it) {
  EXPECT_EQ(verdict("origin", {.sealed = true}), "");
  EXPECT_EQ(verdict("absolute", {.sealed = true}), "");
}

}  // namespace
}  // namespace opmux::plugin
