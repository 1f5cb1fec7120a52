#include "readers/pte_program.h"

#include <gtest/gtest.h>

#include "readers/memory_file.h"

namespace gpumemprof {
namespace {

/// Writes a flatbuffer front to back; what is pointed to comes later and is patched in.
class PteBytes {
 public:
  std::string bytes;

  void number(uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  }
  size_t hole() {
    number(0, 4);
    return bytes.size() - 4;
  }
  /// What is written next is where `hole` points.
  void fill(size_t hole) {
    const uint64_t away = bytes.size() - hole;
    for (unsigned i = 0; i < 4; ++i) bytes[hole + i] = static_cast<char>(away >> (8 * i));
  }
  /// A table's head: `offsets` of its fields from its start.
  void table(const std::vector<uint16_t>& offsets, size_t hole) {
    const size_t entries = bytes.size();
    number(4 + 2 * offsets.size(), 2), number(64, 2);
    for (const uint16_t offset : offsets) number(offset, 2);
    fill(hole);
    number(bytes.size() - entries, 4);
  }
  void text(const std::string& value, size_t hole) {
    fill(hole);
    number(value.size(), 4);
    bytes += value + '\0';
  }
};

/// A method "forward" with buffers of 4096 and 512 bytes, a delegate, and a segment of 1000 bytes.
std::string program_bytes() {
  PteBytes out;
  const size_t root = out.hole();
  out.bytes += "ET12";
  out.number(0, 24);  // no extended head
  out.table({0, 4, 0, 0, 8}, root);
  const size_t plans = out.hole(), segments = out.hole();
  out.fill(plans);
  out.number(1, 4);
  const size_t plan = out.hole();
  out.table({4, 0, 0, 0, 0, 0, 0, 8, 12}, plan);
  const size_t name = out.hole(), delegates = out.hole(), sizes = out.hole();
  out.text("forward", name);
  out.fill(sizes);
  out.number(3, 4), out.number(0, 8), out.number(4096, 8), out.number(512, 8);
  out.fill(delegates);
  out.number(1, 4);
  const size_t delegate = out.hole();
  out.table({4}, delegate);
  const size_t id = out.hole();
  out.text("XnnpackBackend", id);
  out.fill(segments);
  out.number(1, 4);
  const size_t segment = out.hole();
  out.table({0, 4}, segment);
  out.number(1000, 8);
  return out.bytes;
}

Result<PteProgram> read_program_bytes(const std::string& bytes) {
  MemoryFile file(bytes);
  return read_pte_program(file);
}

TEST(PteProgram, ThePlanIsRead) {
  const auto program = read_program_bytes(program_bytes());
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_EQ(program->methods.size(), 1u);
  EXPECT_EQ(program->methods[0].name, "forward");
  EXPECT_EQ(program->methods[0].planned_bytes, (std::vector<uint64_t>{4096, 512}));
  EXPECT_EQ(program->methods[0].total_planned_bytes(), 4608u);
  EXPECT_EQ(program->methods[0].delegates, std::vector<std::string>{"XnnpackBackend"});
  EXPECT_EQ(program->constant_bytes, 1000u);
}

TEST(PteProgram, WhatIsNoneIsRefused) {
  EXPECT_FALSE(read_program_bytes(""));
  EXPECT_FALSE(read_program_bytes(std::string(100, 'x')));
  std::string other = program_bytes();
  other[4] = 'X';
  EXPECT_NE(read_program_bytes(other).error().message.find("not an ExecuTorch program"),
            std::string::npos);
}

TEST(PteProgram, NoByteLeadsOutOfTheFile) {
  const std::string whole = program_bytes();
  for (size_t size = 0; size < whole.size(); ++size)
    (void)read_program_bytes(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\x00', '\x01', '\x7f', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      const auto program = read_program_bytes(changed);
      if (!program) {
        EXPECT_EQ(program.error().message.find('\n'), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace gpumemprof
