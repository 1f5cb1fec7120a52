#include "probe/python_code.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace gpumemprof::probe {
namespace {

/// A code object of ten units with its own instructions and a list of copies; a frame that runs one.
class PythonCopies : public ::testing::Test {
 protected:
  PythonCopies() {
    g_python.layout = {.object_size = 32, .frame_copy = 72, .code_copies = 200};
    g_python.layout.code_bytes = 208;
    set(code_, 32, uint64_t{10});
    set(code_, 200, reinterpret_cast<uint64_t>(list_));
    list_[0] = 3;  // its length
    list_[2] = reinterpret_cast<uint64_t>(copy_);
  }
  ~PythonCopies() override { g_python.layout = {}; }

  template <class T>
  static void set(char* object, size_t offset, T value) {
    memcpy(object + offset, &value, sizeof value);
  }
  uint64_t begin_at(const char* instruction, int32_t copy) {
    set(frame_, 72, copy);
    return begin_of_code(frame_, code_, reinterpret_cast<uint64_t>(instruction));
  }
  static uint64_t number(const char* address) { return reinterpret_cast<uint64_t>(address); }

  alignas(8) char code_[240] = {};
  alignas(8) char frame_[80] = {};
  alignas(8) char copy_[32] = {};
  uint64_t list_[4] = {};
};

TEST_F(PythonCopies, TheFirstThreadRunsTheCodeItself) {
  EXPECT_EQ(begin_at(code_ + 208, 0), number(code_ + 208));
  EXPECT_EQ(begin_at(code_ + 208 + 18, 0), number(code_ + 208));
  EXPECT_EQ(begin_at(code_ + 206, 0), number(code_ + 208)) << "a generator that has not begun";
}

TEST_F(PythonCopies, AnotherThreadsCopyIsInTheList) {
  EXPECT_EQ(begin_at(copy_ + 4, 1), number(copy_));
}

TEST_F(PythonCopies, WhatTheListNoLongerNamesIsNotKnown) {
  EXPECT_EQ(begin_at(copy_ + 20, 1), 0u) << "behind the copy";
  EXPECT_EQ(begin_at(copy_ + 4, 2), 0u) << "another's copy";
  EXPECT_EQ(begin_at(copy_ + 4, 0), 0u) << "the first thread has none";
}

TEST_F(PythonCopies, AListThatWasFreedIsNotRead) {
  void* gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, 4096);
  set(code_, 200, reinterpret_cast<uint64_t>(gone));
  EXPECT_EQ(begin_at(copy_ + 4, 1), 0u);
}

}  // namespace
}  // namespace gpumemprof::probe
