#include "run/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace gpumemprof {
namespace {

/// A small ELF file: one segment that maps the whole file at 0, an interpreter, a dynamic section.
std::string small_elf() {
  std::string strings = std::string("\0libasan.so.8\0libx.so\0__asan_init\0", 34);
  std::string interpreter("/lib64/ld-linux-x86-64.so.2\0", 28);
  constexpr size_t kHeaders = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
  size_t strings_at = kHeaders, interpreter_at = strings_at + strings.size();
  size_t dynamic_at = interpreter_at + interpreter.size();
  Elf64_Dyn dynamic[5] = {};
  dynamic[0].d_tag = DT_NEEDED, dynamic[0].d_un.d_val = 1;
  dynamic[1].d_tag = DT_SONAME, dynamic[1].d_un.d_val = 14;
  dynamic[2].d_tag = DT_STRTAB, dynamic[2].d_un.d_ptr = strings_at;
  dynamic[3].d_tag = DT_STRSZ, dynamic[3].d_un.d_val = strings.size();
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof header, header.e_phnum = 3, header.e_phentsize = sizeof(Elf64_Phdr);
  Elf64_Phdr segments[3] = {};
  segments[0].p_type = PT_LOAD, segments[0].p_filesz = dynamic_at + sizeof dynamic;
  segments[1].p_type = PT_INTERP, segments[1].p_offset = interpreter_at;
  segments[1].p_filesz = interpreter.size();
  segments[2].p_type = PT_DYNAMIC, segments[2].p_offset = dynamic_at;
  segments[2].p_filesz = sizeof dynamic;
  std::string file(reinterpret_cast<char*>(&header), sizeof header);
  file.append(reinterpret_cast<char*>(segments), sizeof segments);
  file += strings + interpreter;
  file.append(reinterpret_cast<char*>(dynamic), sizeof dynamic);
  return file;
}

std::optional<ElfFacts> facts_of(const std::string& bytes) {
  int fd = memfd_create("elf", MFD_CLOEXEC);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  auto facts = read_elf_facts(fd);
  close(fd);
  return facts;
}

TEST(Elf, NamesInterpreterLibrariesAndSanitizers) {
  auto facts = facts_of(small_elf());
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->is_64_bit);
  EXPECT_FALSE(facts->damaged);
  EXPECT_EQ(facts->machine, EM_X86_64);
  EXPECT_EQ(facts->interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(facts->soname, "libx.so");
  EXPECT_THAT(facts->needed, testing::ElementsAre("libasan.so.8"));
  EXPECT_THAT(facts->sanitizer_symbols, testing::ElementsAre("__asan_init"));
}

TEST(Elf, ThisTestIsADynamicProgramForThisMachine) {
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  auto facts = read_elf_facts(fd);
  close(fd);
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->damaged);
  EXPECT_EQ(facts->machine, own_elf_machine());
  EXPECT_THAT(facts->interpreter, testing::HasSubstr("ld-linux"));
  EXPECT_THAT(facts->needed, testing::Contains(testing::StartsWith("libc.so")));
}

TEST(Elf, ExportsAreThoseOfTheDynamicSymbols) {
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_THAT(read_elf_exports(fd, "memfd_create"), testing::IsEmpty());  // needed, not exported
  close(fd);
  const std::string elf = small_elf();
  fd = memfd_create("elf", MFD_CLOEXEC);
  ASSERT_EQ(write(fd, elf.data(), elf.size()), static_cast<ssize_t>(elf.size()));
  EXPECT_THAT(read_elf_exports(fd, ""), testing::IsEmpty());  // it has no sections
  close(fd);
}

TEST(Elf, CallsByNameAreThoseThatALibraryLoadedBeforeGets) {
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(elf_calls_by_name(fd, "memfd_create"));
  EXPECT_FALSE(elf_calls_by_name(fd, "memfd_creat"));
  close(fd);
  const std::string elf = small_elf();
  fd = memfd_create("elf", MFD_CLOEXEC);
  ASSERT_EQ(write(fd, elf.data(), elf.size()), static_cast<ssize_t>(elf.size()));
  EXPECT_FALSE(elf_calls_by_name(fd, "memfd_create"));  // it has no sections
  close(fd);
}

TEST(Elf, OtherFilesAreNoElf) {
  EXPECT_FALSE(facts_of(""));
  EXPECT_FALSE(facts_of("#!/bin/sh\n"));
  EXPECT_FALSE(
      facts_of("\x7f"
               "ELF"));
}

TEST(Elf, TruncatedAnywhereIsNeverTakenForWhole) {
  std::string whole = small_elf();
  for (size_t size = EI_NIDENT; size < whole.size(); ++size) {
    auto facts = facts_of(whole.substr(0, size));
    ASSERT_TRUE(facts) << size;
    EXPECT_TRUE(facts->damaged) << size;
  }
}

TEST(Elf, EveryByteMayBeAnything) {
  std::string whole = small_elf();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(value);
      auto facts = facts_of(damaged);
      if (facts) {
        EXPECT_LE(facts->needed.size(), 5u);
      }
    }
  }
}

TEST(Elf, HugeCountsAndOffsetsAreRefused) {
  std::string file = small_elf();
  auto* header = reinterpret_cast<Elf64_Ehdr*>(file.data());
  header->e_phnum = 0xffff;
  EXPECT_TRUE(facts_of(file)->damaged);
  file = small_elf();
  reinterpret_cast<Elf64_Ehdr*>(file.data())->e_phoff = UINT64_MAX - 8;
  EXPECT_TRUE(facts_of(file)->damaged);
}

}  // namespace
}  // namespace gpumemprof
