#include "run/program.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "programXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view bytes, mode_t mode = 0755) {
    std::string path = folder_ + '/' + name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  std::string write_elf(const std::string& name, unsigned char elf_class, uint16_t machine,
                        mode_t mode = 0755) {
    Elf64_Ehdr header = {};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = elf_class, header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = machine;
    return write(name, {reinterpret_cast<char*>(&header), sizeof header}, mode);
  }
  /// A copy of a dynamic program, so that bits and capabilities can be put on it.
  std::string copy_of_true(mode_t mode) {
    std::string path = folder_ + "/true";
    fs::copy_file("/bin/true", path, fs::copy_options::overwrite_existing);
    chmod(path.c_str(), mode);
    return path;
  }
  std::string reason(const std::string& path, Caller caller) {
    auto program = inspect_program(path, "/usr/bin:/bin", caller);
    return program ? program->unrecordable : "error: " + program.error().message;
  }

  std::string folder_;
  Caller nobody_ = {.uid = 65534, .euid = 65534, .gid = 65534, .egid = 65534};
  Caller owner_ = {.uid = getuid(), .euid = getuid(), .gid = getgid(), .egid = getgid()};
};

TEST(ScriptInterpreters, AreTheWordsThatWillRun) {
  EXPECT_THAT(script_interpreters("#!/bin/sh\necho"), ElementsAre("/bin/sh"));
  EXPECT_THAT(script_interpreters("#! /usr/bin/python3 -u\n"), ElementsAre("/usr/bin/python3"));
  EXPECT_THAT(script_interpreters("#!/usr/bin/env python3\n"),
              ElementsAre("/usr/bin/env", "python3"));
  EXPECT_THAT(script_interpreters("#!/usr/bin/env -S A=1 python3 -u\n"),
              ElementsAre("/usr/bin/env", "python3"));
  EXPECT_THAT(script_interpreters("#!"), IsEmpty());
  EXPECT_THAT(script_interpreters("#!\n/bin/sh"), IsEmpty());
  EXPECT_THAT(script_interpreters("echo"), IsEmpty());
}

TEST_F(ProgramTest, IsSearchedInPathInOrder) {
  write("tool", "#!/bin/sh\n", 0644);  // not executable: passed over
  fs::create_directory(folder_ + "/second");
  std::string second = write("second/tool", "#!/bin/sh\n");
  auto program = inspect_program("tool", folder_ + ":" + folder_ + "/second", owner_);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->path, second);
  EXPECT_THAT(program->unrecordable, IsEmpty());
}

TEST_F(ProgramTest, WhatCannotRunIsNotFound) {
  std::string plain = write("plain", "x", 0644);
  for (const std::string& command :
       {std::string(), std::string("no-such-command"), folder_ + "/none", folder_, plain}) {
    auto program = inspect_program(command, folder_, owner_);
    ASSERT_FALSE(program) << command;
    EXPECT_EQ(program.error().code, ErrorCode::kNotFound);
  }
}

TEST_F(ProgramTest, ForeignFilesAreNamedByTheirKind) {
  EXPECT_EQ(reason(write_elf("small", ELFCLASS32, EM_386), owner_), "a 32-bit program");
  EXPECT_EQ(reason(write_elf("other", ELFCLASS64, EM_RISCV), owner_),
            "a program for another processor");
}

TEST_F(ProgramTest, AScriptIsWhatItsInterpreterIs) {
  std::string foreign = write_elf("small", ELFCLASS32, EM_386);
  std::string script = write("script", "#!" + foreign + "\n");
  EXPECT_EQ(reason(script, owner_), "a 32-bit program");
  EXPECT_EQ(reason(write("outer", "#!" + script + "\n"), owner_), "a 32-bit program");
  EXPECT_THAT(reason(write("lost", "#!/no/such/interpreter\n"), owner_), HasSubstr("interpreter"));
}

TEST_F(ProgramTest, ScriptsThatNameEachOtherEnd) {
  std::string a = folder_ + "/a", b = folder_ + "/b";
  write("a", "#!" + b + "\n");
  write("b", "#!" + a + "\n");
  EXPECT_EQ(reason(a, owner_), "");  // the kernel refuses it; that is for exec to say
}

TEST_F(ProgramTest, SetuidMattersOnlyWhereIdsChange) {
  std::string path = copy_of_true(04755);
  EXPECT_EQ(reason(path, owner_), "");
  if (nobody_.uid == getuid()) GTEST_SKIP() << "runs as nobody itself";
  EXPECT_THAT(reason(path, nobody_), HasSubstr("setuid"));
  Caller restricted = nobody_;
  restricted.no_new_privileges = true;
  EXPECT_EQ(reason(path, restricted), "");
  EXPECT_THAT(reason(copy_of_true(02755), nobody_), HasSubstr("setgid"));
  EXPECT_EQ(reason(copy_of_true(02745), nobody_),
            "");  // without group execution: mandatory locking
}

TEST_F(ProgramTest, ACallerWithTwoIdentitiesIsSecureModeForEveryProgram) {
  Caller split = owner_;
  split.euid = owner_.uid + 1;
  EXPECT_THAT(reason(copy_of_true(0755), split), HasSubstr("other rights"));
}

}  // namespace
}  // namespace gpumemprof
