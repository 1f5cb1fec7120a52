// Profiles that no JAX wrote: an error with a byte, in bounded memory, or what is left of the
// truth.
#include <gtest/gtest.h>

#include "readers/memory_file.h"
#include "readers/pprof/gunzip.h"
#include "readers/pprof/pprof_for_tests.h"
#include "readers/pprof/read.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

using for_tests::gzip;
using for_tests::PprofWriter;
using for_tests::small_pprof;

/// Reads everything; the error, or nothing.
Error read_to_the_end(const std::string& bytes, PprofLimits limits = {}) {
  MemoryFile file(bytes);
  auto source = read_pprof(file, limits);
  if (!source) {
    EXPECT_EQ(source.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(source.error().message.find('\n'), std::string::npos);
    const bool is_inside = source.error().message.find("decompressed profile") != std::string::npos;
    EXPECT_TRUE(is_inside || source.error().offset.value_or(UINT64_MAX) <= bytes.size())
        << source.error().message;
    return source.error();
  }
  const Tables& tables = (*source)->tables();
  const LiveState& state = *(*source)->state_before_first_event();
  EXPECT_LE(state.devices().size(), tables.devices.size());
  for (size_t i = 0; i < state.devices().size(); ++i) {
    uint64_t bytes_of_stacks = 0;
    for (const Holder& holder : state.holders_now(static_cast<uint16_t>(i))) {
      EXPECT_LT(holder.stack, tables.stacks.stack_count());
      bytes_of_stacks += holder.bytes;
    }
    EXPECT_EQ(bytes_of_stacks, state.devices()[i].live_bytes);
  }
  return {};
}

TEST(HostilePprof, CutAnywhereItIsAnErrorOrAShorterProfile) {
  for (const std::string& whole : {small_pprof(), gzip(small_pprof())}) {
    for (size_t size = 0; size < whole.size(); ++size) (void)read_to_the_end(whole.substr(0, size));
  }
  const std::string compressed = gzip(small_pprof());
  EXPECT_EQ(read_to_the_end(compressed.substr(0, compressed.size() - 1)).message,
            "the compressed data is truncated");
}

TEST(HostilePprof, WithAnyByteOrBitChangedItIsReadOrRefused) {
  for (const std::string& whole : {small_pprof(), gzip(small_pprof())}) {
    for (size_t at = 0; at < whole.size(); ++at) {
      for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        (void)read_to_the_end(bytes);
      }
    }
  }
}

TEST(HostilePprof, AFlippedByteInTheCompressedDataIsSeenByTheirChecksum) {
  std::string bytes = gzip(small_pprof());
  bytes[bytes.size() - 6] ^= 1;  // of the CRC
  EXPECT_EQ(read_to_the_end(bytes).message, "the compressed data is damaged");
}

TEST(HostilePprof, ABombIsRefusedWhereItExceedsTheLimit) {
  const std::string bomb = gzip(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 80u << 10);
  const Error error = read_to_the_end(bomb, {.profile_bytes = 1 << 20});
  EXPECT_EQ(error.message, "decompresses to more than 1048576 bytes");
  EXPECT_LE(error.offset.value_or(UINT64_MAX), bomb.size());
}

TEST(HostilePprof, WhatFollowsTheCompressedDataIsRefused) {
  const std::string bytes = gzip(small_pprof());
  const Error error = read_to_the_end(bytes + "x");
  EXPECT_EQ(error.message, "extra bytes after the compressed data");
  EXPECT_EQ(error.offset, bytes.size());
}

TEST(HostilePprof, MoreBuffersThanTheFileCouldTellOfAreRefused) {
  const Error error =
      read_to_the_end(PprofWriter().write({{INT64_MAX, INT64_MAX, "buffer", "cpu:0", {}}}));
  EXPECT_NE(error.message.find("memory"), std::string::npos);
  EXPECT_GT(error.offset.value_or(0), 0u);
}

TEST(HostilePprof, AMillionPlacesInAMillionStacksAreRefused) {
  std::string line, location, bytes = small_pprof();
  for (int i = 0; i < 100'000; ++i) location.append("\x22\x00", 2);  // lines of nothing
  protozero::pbf_writer(location).add_uint64(1, 99);
  protozero::pbf_writer(bytes).add_message(4, location);
  std::string sample("\x0a");
  std::string ids(100'000, '\x63');
  sample.clear();
  protozero::pbf_writer(sample).add_message(1, ids);
  protozero::pbf_writer(bytes).add_message(2, sample);
  EXPECT_NE(read_to_the_end(bytes, {.memory_bytes = 32 << 20}).message.find("memory"),
            std::string::npos);
}

TEST(HostilePprof, ASampleOfAPlaceThatIsNotThereIsRefusedAtItsByte) {
  std::string bytes = small_pprof();
  const uint64_t at = bytes.size();
  protozero::pbf_writer(bytes).add_message(2, std::string("\x08\x63", 2));
  const Error error = read_to_the_end(bytes);
  EXPECT_EQ(error.message, "a sample refers to a missing location");
  EXPECT_EQ(error.offset, at);
}

TEST(HostilePprof, ThousandsOfDevicesAreRefused) {
  std::vector<for_tests::PprofSample> samples;
  for (int i = 0; i < 1100; ++i)
    samples.push_back({1, 1, "buffer", "tpu:" + std::to_string(i), {}});
  EXPECT_EQ(read_to_the_end(PprofWriter().write(samples)).message, "more than 1,024 devices");
}

}  // namespace
}  // namespace gpumemprof
