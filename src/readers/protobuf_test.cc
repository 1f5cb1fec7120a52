// Messages are written by protozero's writer, or byte by byte from the encoding's description
// (protobuf.dev/programming-guides/encoding).
#include "readers/protobuf.h"

#include <gtest/gtest.h>

#include <functional>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "readers/memory_file.h"

namespace gpumemprof {
namespace {

using std::string_literals::operator""s;

/// The error of a walk over all fields that asks every field for `get`.
Error error_of(
    const std::string& bytes, uint64_t offset = 0,
    const std::function<void(ProtobufFields&)>& get = [](ProtobufFields&) {}) {
  ProtobufFields fields(bytes, offset);
  while (fields.next()) get(fields);
  const Status status = fields.status();
  return status ? Error{} : status.error();
}

TEST(Protobuf, EveryWireTypeGivesItsValueAndItsPlace) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_uint64(1, UINT64_MAX);   // bytes 0 to 10
  writer.add_int64(2, -5);            // 11 to 21
  writer.add_fixed32(3, 0x80000001);  // 22 to 26
  writer.add_double(4, -0.5);         // 27 to 35
  writer.add_string(5, "abc");        // 36 to 40
  ProtobufFields fields(bytes, 1000);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.unsigned_integer(), UINT64_MAX);
  EXPECT_EQ(fields.offset(), 1000u);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.signed_integer(), -5);
  EXPECT_EQ(fields.offset(), 1011u);
  ASSERT_TRUE(fields.next());  // passed over
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.float64(), -0.5);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.number(), 5u);
  EXPECT_EQ(fields.bytes(), "abc");
  EXPECT_EQ(fields.value_offset(), 1038u);
  EXPECT_FALSE(fields.next());
  EXPECT_TRUE(fields.status().has_value());
}

TEST(Protobuf, RepeatedIntegersArePackedOrNot) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  const std::vector<uint64_t> packed = {1, 300, UINT64_MAX};
  writer.add_packed_uint64(1, packed.begin(), packed.end());
  writer.add_uint64(1, 7);
  std::vector<uint64_t> got;
  ProtobufFields fields(bytes);
  while (fields.next()) fields.integers([&](uint64_t value) { got.push_back(value); });
  EXPECT_TRUE(fields.status().has_value());
  EXPECT_EQ(got, (std::vector<uint64_t>{1, 300, UINT64_MAX, 7}));
}

TEST(Protobuf, MistakesNameTheirByte) {
  EXPECT_EQ(error_of("\x08"s, 50).offset, 51u);  // a number that is missing
  EXPECT_EQ(error_of("\x08\x80"s).message, "a protobuf number is truncated");
  EXPECT_EQ(error_of("\x08"s + std::string(10, '\x80') + "\1").message,
            "a protobuf number longer than 10 bytes");
  EXPECT_EQ(error_of("\x0a\x05"s + "abcd").message, "a protobuf field of 5 bytes where 4 are left");
  EXPECT_EQ(error_of("\x0a\x05"s + "abcd").offset, 1u);
  EXPECT_EQ(error_of("\x0d\x01\x02\x03"s).message, "a protobuf field is truncated");
  EXPECT_EQ(error_of("\x0b"s).message, "a protobuf field of unknown wire type 3");
  EXPECT_EQ(error_of("\x02\x00"s).message, "not a protobuf field");  // number 0
}

TEST(Protobuf, ALengthOfMoreThan32BitsIsNotCutToThem) {
  // 2^32 + 1: what a decoder that keeps 32 bits takes for 1.
  EXPECT_EQ(error_of("\x0a\x81\x80\x80\x80\x10"s + "abcd").message,
            "a protobuf field of 4294967297 bytes where 4 are left");
}

TEST(Protobuf, AFieldOfAnotherTypeIsAMistakeOfTheFile) {
  const Error error = error_of("\x10\x01\x18\x05"s, 0, [](ProtobufFields& fields) {
    if (fields.number() == 3) {
      EXPECT_EQ(fields.bytes(), "");
    }
  });
  EXPECT_EQ(error.message, "protobuf field 3 has wire type 0, expected 2");
  EXPECT_EQ(error.offset, 2u);
}

TEST(Protobuf, NumbersOfAPackedFieldThatAreCutShortEndTheWalk) {
  uint64_t calls = 0;
  const Error error = error_of("\x0a\x02\x05\x80\x10\x01"s, 0, [&](ProtobufFields& fields) {
    fields.integers([&](uint64_t) { ++calls; });
  });
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(error.offset, 3u);
}

TEST(Protobuf, AFileThatShrinksIsAnError) {
  MemoryFile file("\x08\x01");
  EXPECT_EQ(read_protobuf_file(file).value(), "\x08\x01");
  file.claim(10);
  EXPECT_EQ(read_protobuf_file(file).error().offset, 2u);
  file.claim(kMostProtobufBytes + 1);
  EXPECT_EQ(read_protobuf_file(file).error().offset, kMostProtobufBytes);
}

TEST(Protobuf, ABudgetIsNeverOverdrawn) {
  MemoryBudget budget(10);
  EXPECT_TRUE(budget.take(4));
  EXPECT_FALSE(budget.take(7));
  EXPECT_TRUE(budget.take(6));
  EXPECT_FALSE(budget.take(1));
}

}  // namespace
}  // namespace gpumemprof
