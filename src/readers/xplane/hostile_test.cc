// Profiles that nobody's TensorFlow wrote: an error with a byte, in bounded memory, or what is left
// of the truth.
#include <gtest/gtest.h>

#include "readers/memory_file.h"
#include "readers/xplane/read.h"
#include "readers/xplane/xplane_for_tests.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

using for_tests::small_xplane;
using for_tests::XplaneEvent;
using for_tests::XplaneWriter;

/// Reads everything; the error, or nothing.
Error read_xplane_to_the_end(const std::string& bytes, uint64_t memory_bytes = 0) {
  MemoryFile file(bytes);
  auto source = read_xplane(file, {.memory_bytes = memory_bytes});
  if (!source) {
    EXPECT_EQ(source.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(source.error().message.find('\n'), std::string::npos);
    EXPECT_LE(source.error().offset.value_or(UINT64_MAX), bytes.size()) << source.error().message;
    return source.error();
  }
  const Tables& tables = (*source)->tables();
  EventBatch batch;
  LiveState state;
  if (const LiveState* before = (*source)->state_before_first_event()) state = *before;
  uint64_t last = 0;
  while (*(*source)->next(&batch)) {
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_LE(last, batch.time_ns[i]);
      last = batch.time_ns[i];
      EXPECT_LT(batch.device[i], tables.devices.size());
      EXPECT_LT(batch.thread[i], tables.threads.size());
      EXPECT_LT(batch.stack[i], tables.stacks.stack_count());
    }
    state.apply(batch);
  }
  return {};
}

TEST(HostileXplane, CutAnywhereItIsAnErrorOrAShorterProfile) {
  const std::string whole = small_xplane();
  for (size_t size = 0; size < whole.size(); ++size)
    (void)read_xplane_to_the_end(whole.substr(0, size));
  EXPECT_EQ(read_xplane_to_the_end(whole.substr(0, 40)).message.find("a protobuf field of "), 0u);
}

TEST(HostileXplane, WithAnyByteOrBitChangedItIsReadOrRefused) {
  const std::string whole = small_xplane();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      (void)read_xplane_to_the_end(bytes);
    }
  }
}

TEST(HostileXplane, MoreThanTheFileCouldNeedIsRefusedWithItsByte) {
  XplaneWriter writer;
  std::vector<XplaneEvent> events;
  for (int64_t i = 0; i < 3000; ++i) {
    events.push_back({.address = i, .size_bytes = 1, .operation = "op_" + std::to_string(i)});
  }
  const std::string bytes = XplaneWriter::space(writer.plane({{"python", 1, events}}));
  const Error error = read_xplane_to_the_end(bytes, 300 << 10);
  EXPECT_NE(error.message.find("memory"), std::string::npos) << error.message;
  EXPECT_GT(error.offset.value_or(0), 0u);
  EXPECT_TRUE(read_xplane_to_the_end(bytes, 4 << 20).message.empty());
}

TEST(HostileXplane, AMillionNamesAreNotKeptForNothing) {
  // An entry of the dictionary of stats in four bytes.
  std::string plane("\x12\x09/host:CPU");
  for (int i = 0; i < 1'000'000; ++i) plane.append("\x2a\x02\x08", 3) += static_cast<char>(i % 100);
  std::string bytes;
  protozero::pbf_writer(bytes).add_message(1, plane);
  EXPECT_NE(read_xplane_to_the_end(bytes, 1 << 20).message.find("memory"), std::string::npos);
}

TEST(HostileXplane, ThousandsOfAllocatorsAreRefused) {
  XplaneWriter writer;
  std::vector<XplaneEvent> events;
  for (int64_t i = 0; i < 1100; ++i) {
    events.push_back({.address = i, .size_bytes = 1, .allocator = "pool_" + std::to_string(i)});
  }
  const Error error =
      read_xplane_to_the_end(XplaneWriter::space(writer.plane({{"python", 1, events}})));
  EXPECT_EQ(error.message, "more than 1,024 allocators");
}

TEST(HostileXplane, TimesAndSizesAtTheEndsOfTheirRangesAreRead) {
  XplaneWriter writer;
  const std::vector<XplaneEvent> events = {
      {.time_ps = INT64_MAX, .address = -1, .size_bytes = INT64_MAX, .total_bytes = INT64_MAX},
      {.time_ps = INT64_MIN, .is_alloc = false, .address = -1, .size_bytes = INT64_MAX},
      {.time_ps = -5, .address = 0, .size_bytes = 1, .total_bytes = 0}};
  for (int64_t start : {INT64_MIN, int64_t{0}, INT64_MAX}) {
    const std::string plane = writer.plane({{"python", start, events}});
    EXPECT_TRUE(read_xplane_to_the_end(XplaneWriter::space(plane, INT64_MAX)).message.empty());
    EXPECT_TRUE(read_xplane_to_the_end(XplaneWriter::space(plane)).message.empty());
  }
}

TEST(HostileXplane, NestingCostsNothing) {
  std::string bytes = "x";
  for (int i = 0; i < 3000; ++i) {  // fields of no number that is known, inside one another
    std::string outer;
    protozero::pbf_writer(outer).add_message(3, bytes);
    bytes = std::move(outer);
  }
  std::string plane("\x12\x09/host:CPU"), space;
  protozero::pbf_writer(plane).add_message(3, bytes);
  protozero::pbf_writer(space).add_message(1, plane);
  EXPECT_TRUE(read_xplane_to_the_end(space).message.empty());
}

}  // namespace
}  // namespace gpumemprof
