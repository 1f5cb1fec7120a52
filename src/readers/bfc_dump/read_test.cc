#include "readers/bfc_dump/read.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "readers/memory_file.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

struct Chunk {
  uint64_t address, size_bytes, requested_bytes;
  bool in_use;
  std::string operation;
};

/// As TensorFlow writes it: name, bins, chunks, statistics; zeros are left out.
std::string dump_of(const std::vector<Chunk>& chunks) {
  std::string bytes;
  protozero::pbf_writer dump(bytes);
  dump.add_string(1, "GPU_1_bfc");
  protozero::pbf_writer(dump, 2).add_int64(3, 1024);
  for (const Chunk& chunk : chunks) {
    protozero::pbf_writer message(dump, 3);
    message.add_uint64(1, chunk.address);
    message.add_int64(2, static_cast<int64_t>(chunk.size_bytes));
    message.add_int64(3, static_cast<int64_t>(chunk.requested_bytes));
    message.add_int32(4, -1);
    if (!chunk.operation.empty()) message.add_string(5, chunk.operation);
    if (chunk.in_use) message.add_bool(8, true);
  }
  protozero::pbf_writer statistics(dump, 5);
  statistics.add_int64(1, 9);
  statistics.add_int64(2, 768);
  statistics.add_int64(3, 2048);
  statistics.add_int64(4, 512);
  statistics.add_float(5, 0.5F);
  return bytes;
}

std::string small_dump() {
  return dump_of({{0x1000, 512, 300, true, "dense/MatMul"},
                  {0x1200, 256, 99, false, ""},
                  {0x1300, 256, 256, true, "UNKNOWN"}});
}

Result<BfcPool> read(const std::string& bytes) {
  MemoryFile file(bytes);
  return read_bfc_dump(file);
}

TEST(BfcDump, ChunksAndStatisticsAreRead) {
  const BfcPool pool = read(small_dump()).value();
  EXPECT_EQ(pool.allocator, "GPU_1_bfc");
  ASSERT_EQ(pool.chunks.size(), 3u);
  EXPECT_EQ(pool.chunks[0].address, 0x1000u);
  EXPECT_EQ(pool.chunks[0].requested_bytes, 300u);
  EXPECT_EQ(pool.operations[pool.chunks[0].operation], "dense/MatMul");
  EXPECT_FALSE(pool.chunks[1].in_use);
  EXPECT_FALSE(pool.chunks[1].requested_bytes);  // its last user's
  EXPECT_EQ(pool.chunks[2].operation, 0u);       // "UNKNOWN" is no name
  EXPECT_EQ(pool.requested->bytes, 556u);
  EXPECT_EQ(pool.allocations, 9u);
  EXPECT_EQ(pool.in_use->bytes, 768u);
  EXPECT_EQ(pool.peak_in_use->bytes, 2048u);
  EXPECT_TRUE(pool.is_complete);
}

TEST(BfcDump, AsAStreamItIsWhatIsLiveAndNoHistory) {
  MemoryFile file(small_dump());
  auto source = read_bfc_dump_source(file).value();
  const DeviceState& before = source->state_before_first_event()->devices()[0];
  EXPECT_EQ(before.live_bytes, 768u);
  EXPECT_EQ(before.live_count, 2u);
  EXPECT_EQ(device_name(source->tables().devices[0]), "tensorflow:GPU_1_bfc");
  EventBatch batch;
  ASSERT_TRUE(*source->next(&batch));
  EXPECT_EQ(batch.action, std::vector<Action>{Action::kSnapshot});
  EXPECT_EQ(batch.size_bytes[0], 768u);
  EXPECT_FALSE(*source->next(&batch));
  EXPECT_EQ(source->loss().reasons.size(), 1u);
  ASSERT_NE(pool_of(*source), nullptr);
}

TEST(BfcDump, IsRecognisedByItsContent) {
  EXPECT_TRUE(looks_like_bfc_dump(small_dump()));
  EXPECT_FALSE(looks_like_bfc_dump(""));
  EXPECT_FALSE(looks_like_bfc_dump("\n[1, 2]"));
  EXPECT_FALSE(looks_like_bfc_dump("\x0a\x04\x08\x01\x10\x02\x12\x02\x08\x01"));  // pprof
  EXPECT_FALSE(looks_like_bfc_dump("\x0a\x09/host:CPU\x12\x01x"));
}

TEST(BfcDump, MistakesNameTheirByte) {
  EXPECT_EQ(read("").error().offset, 0u);
  EXPECT_EQ(read("\x0a\x03"
                 "abc")
                .error()
                .message,
            "a memory dump without chunks");
  const auto too_much = read(dump_of({{1, uint64_t{1} << 61, 0, true, ""},
                                      {1, uint64_t{1} << 61, 0, true, ""},
                                      {1, 1, 0, true, ""}}));
  EXPECT_EQ(too_much.error().message, "chunk sizes exceed the address space");
  EXPECT_GT(too_much.error().offset.value_or(0), 40u);
  EXPECT_EQ(read(dump_of({{1, UINT64_MAX, 0, true, ""}})).error().code, ErrorCode::kBadInput);
}

TEST(BfcDump, CutOrChangedAnywhereItIsReadOrRefused) {
  const std::string whole = small_dump();
  const auto look = [](const std::string& bytes) {
    const auto pool = read(bytes);
    if (pool) {
      for (const BfcChunk& chunk : pool->chunks)
        EXPECT_LT(chunk.operation, pool->operations.size());
    } else {
      EXPECT_LE(pool.error().offset.value_or(UINT64_MAX), bytes.size());
    }
  };
  for (size_t size = 0; size < whole.size(); ++size) look(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      look(bytes);
    }
  }
}

TEST(BfcDump, MoreChunksThanAnybodyHasAreRefused) {
  std::string bytes("\x0a\x01g");
  for (size_t i = 0; i <= kMostBfcChunks; ++i) bytes.append("\x1a\x00", 2);
  EXPECT_EQ(read(bytes).error().message, "more than 1,048,576 chunks");
}

}  // namespace
}  // namespace gpumemprof
