// What TensorFlow prints when it runs out of memory, cut off and changed at every byte: a figure of
// a part of the text is one of the whole, or it is not there.
#include <gtest/gtest.h>

#include <random>

#include "analysis/oom_message/oom_verdict.h"

namespace gpumemprof {
namespace {

const std::string kTime = "2026-01-02 03:04:05.000001: I tensorflow/bfc_allocator.cc:1] ";
const std::string kLog =
    "W bfc_allocator.cc:2] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.9KiB "
    "(rounded to 4096)requested by op model/dense/MatMul\nIf the cause is memory fragmentation "
    "maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the "
    "situation. \nCurrent allocation summary follows.\n" +
    kTime + "BFCAllocator dump for GPU_0_bfc\n" + kTime +
    "Bin (4096): \tTotal Chunks: 2, Chunks in use: 2. 12.0KiB allocated for chunks. 12.0KiB in use "
    "in bin. 9000B client-requested in use in bin.\n" +
    kTime + "Next region of size 16384\n" + kTime +
    "InUse at 7f0000001000 of size 4096 by op Fill action_count 7 step 3 next 2\n" + kTime +
    "Free  at 7f0000002000 of size 2048 next 3\n" + kTime +
    "InUse at 7f0000002800 of size 8192 next 4\n" + kTime +
    "Free  at 7f0000004800 of size 2048 next 18446744073709551615\n" + kTime +
    "Sum Total of in-use chunks: 12.0KiB\n" + kTime +
    "total_region_allocated_bytes_: 16384 memory_limit_: 16384 available bytes: 0 "
    "curr_region_allocation_bytes_: 16384\n" +
    kTime + "Stats: \nLimit:                   16384\nInUse:                   12288\n" +
    "MaxInUse:                14336\nNumAllocs:                     7123\n" +
    "MaxAllocSize:             8192\n\n";

OomLog scan_hostile(std::string_view text) {
  OomScanner scanner;
  scanner.feed(text);
  return scanner.finish();
}

void expect_same_or_absent(const std::optional<PrintedSize>& part,
                           const std::optional<PrintedSize>& whole, size_t end) {
  if (!part) return;
  ASSERT_TRUE(whole) << end;
  EXPECT_EQ(part->bytes, whole->bytes) << end;
  EXPECT_EQ(part->least_bytes, whole->least_bytes) << end;
}

void expect_part_of(const BfcPool& part, const BfcPool& whole, size_t end) {
  expect_same_or_absent(part.limit, whole.limit, end);
  expect_same_or_absent(part.in_use, whole.in_use, end);
  expect_same_or_absent(part.peak_in_use, whole.peak_in_use, end);
  expect_same_or_absent(part.largest_allocation, whole.largest_allocation, end);
  expect_same_or_absent(part.requested, whole.requested, end);
  if (part.allocations) {
    EXPECT_EQ(part.allocations, whole.allocations) << end;
  }
  EXPECT_EQ(part.allocator, whole.allocator) << end;
  ASSERT_LE(part.regions.size(), whole.regions.size());
  for (size_t i = 0; i < part.regions.size(); ++i) EXPECT_EQ(part.regions[i], whole.regions[i]);
  ASSERT_LE(part.chunks.size(), whole.chunks.size()) << end;
  for (size_t i = 0; i < part.chunks.size(); ++i) {
    EXPECT_EQ(part.chunks[i].address, whole.chunks[i].address) << end;
    EXPECT_EQ(part.chunks[i].size_bytes, whole.chunks[i].size_bytes) << end;
    EXPECT_EQ(part.operations[part.chunks[i].operation],
              whole.operations[whole.chunks[i].operation])
        << end;
  }
  if (part.is_complete) {
    EXPECT_EQ(part.chunks.size(), whole.chunks.size()) << end;
  }
}

TEST(HostileTensorflowOom, CutOffAtEveryByteItNeverInventsAFigure) {
  const OomLog log = scan_hostile(kLog);
  ASSERT_EQ(log.messages.size(), 1u);
  const OomMessage& whole = log.messages[0];
  ASSERT_TRUE(whole.pool && whole.pool->is_complete);
  ASSERT_EQ(whole.pool->chunks.size(), 4u);
  for (size_t end = 0; end < kLog.size(); ++end) {
    const OomLog cut = scan_hostile(std::string_view(kLog).substr(0, end));
    ASSERT_LE(cut.messages.size(), 1u);
    if (cut.messages.empty()) continue;
    const OomMessage& part = cut.messages[0];
    expect_same_or_absent(part.requested, whole.requested, end);
    if (part.rounded_bytes) {
      EXPECT_EQ(part.rounded_bytes, whole.rounded_bytes) << end;
    }
    EXPECT_TRUE(part.operation.empty() || part.operation == whole.operation) << end;
    if (part.pool) expect_part_of(*part.pool, *whole.pool, end);
    EXPECT_FALSE(explain_oom(part, false).summary.empty());
  }
}

TEST(HostileTensorflowOom, AnyByteChangedAndAnyPiecesTogetherAreSurvived) {
  for (size_t at = 0; at < kLog.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = kLog;
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      for (const OomMessage& message : scan_hostile(text).messages) {
        const OomVerdict verdict = explain_oom(message, false);
        ASSERT_FALSE(verdict.summary.empty());
        ASSERT_EQ(verdict.summary.find('\n'), std::string::npos);
      }
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    while (text.size() < 4000) {
      text += kLog.substr(random() % kLog.size(), random() % 200);
      text += static_cast<char>(random());
    }
    for (const OomMessage& message : scan_hostile(text).messages) (void)explain_oom(message, false);
  }
}

}  // namespace
}  // namespace gpumemprof
