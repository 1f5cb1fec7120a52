// Out of memory in TensorFlow: the wordings of its releases and what follows from them. The numbers
// of the states are chosen so that each verdict is arithmetic that can be done by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/oom_message/oom_pool.h"
#include "analysis/oom_message/oom_verdict.h"

namespace gpumemprof {
namespace {

using ::testing::HasSubstr;

/// Read in pieces of every size up to seven, which must not matter.
OomLog scan_tensorflow(const std::string& text) {
  OomScanner whole;
  whole.feed(text);
  OomLog log = whole.finish();
  for (size_t piece = 1; piece < 8; ++piece) {
    OomScanner pieces;
    for (size_t at = 0; at < text.size(); at += piece) pieces.feed(text.substr(at, piece));
    const OomLog same = pieces.finish();
    EXPECT_EQ(same.messages.size(), log.messages.size());
    for (size_t i = 0; i < std::min(log.messages.size(), same.messages.size()); ++i) {
      EXPECT_EQ(same.messages[i].pool != nullptr, log.messages[i].pool != nullptr);
      EXPECT_EQ(same.messages[i].offset, log.messages[i].offset);
    }
  }
  return log;
}

const OomMessage& only(const OomLog& log) {
  EXPECT_EQ(log.messages.size(), 1u);
  static const OomMessage kNone;
  return log.messages.empty() ? kNone : log.messages[0];
}

/// A region of 16 KiB: 4 KiB in use, 2 KiB free, 8 KiB in use, 2 KiB free. `limit` as printed.
std::string state(const std::string& limit, const std::string& allocator = "GPU_0_bfc") {
  const std::string time = "2026-01-02 03:04:05.000001: I tensorflow/bfc_allocator.cc:1] ";
  return time + "BFCAllocator dump for " + allocator + "\n" + time +
         "Bin (2048): \tTotal Chunks: 2, Chunks in use: 0. 4.0KiB allocated for chunks. 0B in use "
         "in bin. 0B client-requested in use in bin.\n" +
         time +
         "Bin (4096): \tTotal Chunks: 2, Chunks in use: 2. 12.0KiB allocated for chunks. 12.0KiB "
         "in use in bin. 9000B client-requested in use in bin.\n" +
         time + "Next region of size 16384\n" + time +
         "InUse at 7f0000001000 of size 4096 next 2\n" + time +
         "Free  at 7f0000002000 of size 2048 next 3\n" + time +
         "InUse at 7f0000002800 of size 8192 next 4\n" + time +
         "Free  at 7f0000004800 of size 2048 next 18446744073709551615\n" + time +
         "     Summary of in-use Chunks by size: \n" + time +
         "Sum Total of in-use chunks: 12.0KiB\n" + time +
         "total_region_allocated_bytes_: 16384 memory_limit_: " + limit +
         " available bytes: 0 curr_region_allocation_bytes_: 16384\n" + time +
         "Stats: \nLimit:                   " + limit +
         "\nInUse:                   12288\n"
         "MaxInUse:                14336\nNumAllocs:                     7\n"
         "MaxAllocSize:             8192\n\n";
}

std::string refusal(const std::string& size, const std::string& rounded) {
  return "W bfc_allocator.cc:2] Allocator (GPU_0_bfc) ran out of memory trying to allocate " +
         size + " (rounded to " + rounded +
         ")requested by op model/dense/MatMul\nIf the cause is memory "
         "fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will "
         "improve the situation. \nCurrent allocation summary follows.\n";
}

TEST(TensorflowOom, TheStateIsReadToTheByte) {
  const OomMessage message = only(scan_tensorflow(refusal("3.9KiB", "4096") + state("16384")));
  ASSERT_TRUE(message.pool);
  EXPECT_EQ(message.backend, "GPU");
  EXPECT_EQ(message.device, 0u);
  EXPECT_EQ(message.operation, "model/dense/MatMul");
  EXPECT_EQ(message.rounded_bytes, 4096u);
  const PoolPicture picture = picture_of(*message.pool);
  EXPECT_EQ(picture.bytes, 16384u);
  EXPECT_EQ(picture.regions, 1u);
  EXPECT_EQ(picture.bytes_in_use, 12288u);
  EXPECT_EQ(picture.free_bytes, 4096u);
  EXPECT_EQ(picture.largest_free_bytes, 2048u);
  EXPECT_EQ(picture.unasked_bytes->least, 12288u - 9000);
  EXPECT_EQ(picture.unasked_bytes->most, 12288u - 9000);
  EXPECT_EQ(picture.growth_bytes->most, 0u);
  ASSERT_EQ(picture.bins.size(), 3u);
  EXPECT_EQ(picture.bins[0].least_bytes, 2048u);
  EXPECT_EQ(picture.bins[2].bytes_in_use, 8192u);
  EXPECT_EQ(message.pool->peak_in_use->bytes, 14336u);
  EXPECT_EQ(message.pool->allocations, 7u);
}

TEST(TensorflowOom, EnoughInPiecesIsFragmentation) {
  const OomVerdict verdict =
      explain_oom(only(scan_tensorflow(refusal("3.9KiB", "4096") + state("16384"))), false);
  EXPECT_EQ(verdict.cause, OomCause::kFragmentation);
  EXPECT_EQ(verdict.usable_bytes->least, 4096u);
  EXPECT_FALSE(verdict.shortage_bytes);
  EXPECT_EQ(verdict.advice[0].command, "export TF_GPU_ALLOCATOR=cuda_malloc_async");
}

TEST(TensorflowOom, PiecesAndGrowthTogetherAreFragmentationToo) {
  // 4096 free and 1024 that the pool may still take: enough for 5120, though neither is alone.
  const OomVerdict verdict =
      explain_oom(only(scan_tensorflow(refusal("5.0KiB", "5120") + state("17408"))), false);
  EXPECT_EQ(verdict.cause, OomCause::kFragmentation);
  EXPECT_EQ(verdict.usable_bytes->most, 5120u);
}

TEST(TensorflowOom, LessThanAskedForIsWantOfMemoryWithTheShortage) {
  const OomVerdict verdict =
      explain_oom(only(scan_tensorflow(refusal("5.2KiB", "5376") + state("17408"))), false);
  EXPECT_EQ(verdict.cause, OomCause::kWantOfMemory);
  EXPECT_EQ(verdict.shortage_bytes->least, 256u);
  EXPECT_EQ(verdict.shortage_bytes->most, 256u);
}

TEST(TensorflowOom, APoolThatWasAllowedToGrowMeansThatTheDeviceRefused) {
  const OomVerdict verdict =
      explain_oom(only(scan_tensorflow(refusal("5.2KiB", "5376") + state("1000000"))), false);
  EXPECT_EQ(verdict.cause, OomCause::kWantOfMemory);
  EXPECT_FALSE(verdict.shortage_bytes);
  EXPECT_THAT(verdict.summary, HasSubstr("the device had no piece of that size"));
}

TEST(TensorflowOom, MoreThanTheLimitIsTheProcesssOwn) {
  const OomVerdict verdict =
      explain_oom(only(scan_tensorflow(refusal("1.0MiB", "1048576") + state("16384"))), false);
  EXPECT_EQ(verdict.cause, OomCause::kOwnLimit);
  EXPECT_EQ(verdict.shortage_bytes->least, 1048576u - 16384);
}

TEST(TensorflowOom, ARoundedLimitThatDecidesIsNotDecided) {
  // "17.0KiB" is from 17357 to 17459 bytes: 5120 may fit or not.
  const OomVerdict verdict =
      explain_oom(only(scan_tensorflow(refusal("5.0KiB", "5120") + state("17.0KiB"))), false);
  EXPECT_EQ(verdict.cause, OomCause::kCannotTell);
}

TEST(TensorflowOom, AStateThatIsCutOffIsNotAddedUp) {
  const std::string whole = refusal("3.9KiB", "4096") + state("16384");
  const OomMessage message = only(scan_tensorflow(whole.substr(0, whole.find("Sum Total"))));
  ASSERT_TRUE(message.pool);
  EXPECT_FALSE(message.pool->is_complete);
  EXPECT_EQ(explain_oom(message, false).cause, OomCause::kCannotTell);
}

TEST(TensorflowOom, TheErrorOfTheSameRefusalGivesTheShapeAndTheBytes) {
  const std::string error =
      "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor "
      "with shape[15,67] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by "
      "allocator GPU_0_bfc\n\t [[{{node model/dense/MatMul}}]]\nHint: If you want to see a list";
  // 15 * 67 * 4 = 4020 bytes, rounded to 4096. Either may stand first.
  for (const std::string& text : {refusal("3.9KiB", "4096") + state("16384") + error,
                                  error + '\n' + refusal("3.9KiB", "4096") + state("16384")}) {
    const OomMessage message = only(scan_tensorflow(text));
    EXPECT_EQ(message.shape, "15,67");
    EXPECT_EQ(message.type, "float");
    EXPECT_EQ(message.requested->least_bytes, 4020u);
    EXPECT_EQ(message.requested->most_bytes, 4020u);
    EXPECT_EQ(message.requested->text, "3.9KiB");
    EXPECT_TRUE(message.pool);
  }
}

TEST(TensorflowOom, TheErrorAloneSaysWhatWasAskedForAndNoMore) {
  const OomMessage message = only(scan_tensorflow(
      "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with "
      "shape[200,75,75,64] and type half on /job:localhost/device:GPU:1 by allocator GPU_1_bfc\n"
      "\t [[node resnet/bn (defined at train.py:3) ]]"));
  EXPECT_EQ(message.requested->bytes, 200u * 75 * 75 * 64 * 2);
  EXPECT_EQ(message.device, 1u);
  const OomVerdict verdict = explain_oom(message, false);
  EXPECT_EQ(verdict.cause, OomCause::kCannotTell);
  EXPECT_EQ(verdict.advice[0].command, "export TF_CPP_MIN_LOG_LEVEL=0");
}

TEST(TensorflowOom, WordingsOfOlderReleases) {
  // 1.x: no rounded size, chunks without neighbours, no title.
  const OomMessage old = only(scan_tensorflow(
      "W allocator.cc:275] Allocator (GPU_0_bfc) ran out of memory trying to allocate 392.00MiB."
      "  Current allocation summary follows.\n"
      "I allocator.cc:1] Bin (256): \tTotal Chunks: 1, Chunks in use: 1. 256B allocated for "
      "chunks. 256B in use in bin. 8B client-requested in use in bin.\n"
      "I allocator.cc:2] Chunk at 0x5015f8b00 of size 98560\n"
      "I allocator.cc:3] Free at 0x501611000 of size 256\n"
      "I allocator.cc:4] Sum Total of in-use chunks: 96.2KiB\n"));
  ASSERT_TRUE(old.pool);
  EXPECT_EQ(old.pool->chunks[0].address, 0x5015f8b00u);
  EXPECT_EQ(old.pool->chunks[1].size_bytes, 256u);
  EXPECT_TRUE(old.pool->is_complete);
  EXPECT_EQ(old.requested->bytes, 392u << 20);
  // A build for debugging names operations.
  BfcLogScanner scanner;
  scanner.feed(
      "BFCAllocator dump for x\nInUse at 10 of size 512 by op dense/Add action_count 7 step 3 next "
      "4\n");
  const BfcPool pool = scanner.finish()[0].pool;
  EXPECT_EQ(pool.operations[pool.chunks[0].operation], "dense/Add");
  EXPECT_EQ(picture_of(pool).by_operation[0].bytes, 512u);
}

TEST(TensorflowOom, WhatTheCallerCanDoWithoutIsNoFailure) {
  const OomMessage message = only(scan_tensorflow(
      "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.46GiB with freed_by_count=0. "
      "The caller indicates that this is not a failure, but may mean that there could be "
      "performance "
      "gains if more memory were available."));
  EXPECT_TRUE(message.is_no_failure);
  EXPECT_THAT(explain_oom(message, false).summary, HasSubstr("Not a failure"));
}

TEST(TensorflowOom, XlaAndProse) {
  const OomMessage message = only(scan_tensorflow(
      "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes."));
  EXPECT_EQ(message.framework, "xla");
  EXPECT_EQ(message.requested->bytes, 1u << 30);
  EXPECT_TRUE(
      scan_tensorflow("OOM when allocating tensor with shape [batch, ...]").messages.empty());
  EXPECT_TRUE(scan_tensorflow("Out of memory (OOM) error").messages.empty());
  EXPECT_TRUE(scan_tensorflow("It ran out of memory trying to allocate buffers").messages.empty());
}

std::string refused_tensor(const std::string& shape, const std::string& allocator) {
  return "OOM when allocating tensor with shape[" + shape +
         "] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator " +
         allocator + " [Op:Fill] name: ";
}

TEST(TensorflowOom, ATebibyteAtOnceIsAWrongSizeInTensorflowAndXla) {
  const OomVerdict tensorflow =
      explain_oom(only(scan_tensorflow(refused_tensor("1000000,10000000", "mklcpu"))), false);
  EXPECT_EQ(tensorflow.summary,
            "More than an ordinary host has, 36.4 TiB, was asked for at once: a shape or a size is "
            "probably wrong.");
  ASSERT_EQ(tensorflow.advice.size(), 2u) << "the state of the pool explains nothing";
  EXPECT_EQ(tensorflow.advice[0].text, "Check the shapes and sizes that the request is made of.");
  const OomMessage jax = only(scan_tensorflow(
      "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 40000000000000 "
      "bytes."));
  EXPECT_EQ(jax.requested->text, "36.4 TiB");
  EXPECT_EQ(jax.requested->bytes, 40'000'000'000'000u);
  EXPECT_EQ(explain_oom(jax, false).summary, tensorflow.summary);
  EXPECT_EQ(explain_oom(jax, false).advice[0].text, tensorflow.advice[0].text);
  EXPECT_EQ(explain_oom(only(scan_tensorflow(refused_tensor("1048576,262144", "GPU_0_bfc"))), false)
                .summary,
            "More than an ordinary device has, 1.00 TiB, was asked for at once: a shape or a size "
            "is probably wrong.");
  EXPECT_EQ(explain_oom(only(scan_tensorflow(refused_tensor("1048575,262144", "GPU_0_bfc"))), false)
                .summary,
            "The message does not say why memory ran out.");
}

TEST(TensorflowOom, OfTheHostTooLittleOrALimitIsSaid) {
  for (const char* allocator : {"mklcpu", "cpu"}) {
    const OomVerdict verdict =
        explain_oom(only(scan_tensorflow(refused_tensor("2048,2048", allocator))), false);
    EXPECT_EQ(verdict.cause, OomCause::kCannotTell);
    EXPECT_EQ(verdict.summary,
              "The host refused memory: it has too little, or a limit (ulimit -v) was reached.");
    EXPECT_EQ(verdict.reasons.back(),
              "The message does not say how much is used, or which limit there is.");
    EXPECT_EQ(verdict.advice.size(), std::string_view(allocator) == "cpu" ? 1u : 2u)
        << "that allocator has no pool with a state to print";
  }
  const OomMessage jax = only(scan_tensorflow(
      "ValueError: RESOURCE_EXHAUSTED: Out of memory allocating 16777216 bytes."));
  EXPECT_EQ(jax.requested->text, "16.0 MiB");
  const OomVerdict verdict = explain_oom(jax, false);
  EXPECT_EQ(verdict.summary,
            "Probably the host refused memory: it has too little, or a limit (ulimit -v) was "
            "reached.");
  EXPECT_EQ(verdict.reasons.back(),
            "The words are those of XLA on a CPU; older TensorFlow's XLA used them for GPUs as "
            "well.");
  EXPECT_EQ(explain_oom(only(scan_tensorflow(
                            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16777216 "
                            "bytes.")),
                        false)
                .summary,
            "The message does not say why memory ran out.");
}

TEST(TensorflowOom, ALogOfNothingButBeginningsIsReadInLinearTime) {
  for (std::string_view part :
       {"Allocator (x) ran out of memory trying to allocate 1.0KiB requested by op y ",
        "OOM when allocating tensor with shape[1] ", "BFCAllocator dump for x\n",
        "InUse at 10 of size 1 next ", "Bin (256): \n"}) {
    std::string text;
    while (text.size() < 1 << 20) text += part;
    OomScanner scanner;
    scanner.feed(text);
    EXPECT_LE(scanner.finish().messages.size(), 1u) << part;  // else this test takes hours
  }
}

TEST(TensorflowOom, StatesBeyondThoseThatAreKeptCostNothing) {
  BfcLogScanner scanner;
  for (size_t i = 0; i < 10 * kMostPlacedPools; ++i)
    scanner.feed("BFCAllocator dump for x\nInUse at 10 of size 512 next 4\n");
  EXPECT_EQ(scanner.finish().size(), kMostPlacedPools);
}

TEST(TensorflowOom, AStateThatWasLeftOutIsNotCalledMissing) {
  std::string text;
  for (size_t i = 0; i <= kMostPlacedPools; ++i)
    text += refusal(std::to_string(i + 1) + ".0KiB", "4096") + state("16384");
  OomScanner scanner;
  scanner.feed(text);
  const OomLog log = scanner.finish();
  ASSERT_EQ(log.messages.size(), kMostPlacedPools + 1);
  EXPECT_TRUE(log.messages[kMostPlacedPools - 1].pool);
  const OomVerdict verdict = explain_oom(log.messages.back(), false);
  EXPECT_THAT(verdict.reasons.back(), HasSubstr("the first 16 states"));
}

TEST(TensorflowOom, ChunksOfImpossibleSizesAreNotAddedUp) {
  const std::string chunk = "InUse at 10 of size 4611686018427387904 next 1\n";
  BfcLogScanner scanner;
  scanner.feed("BFCAllocator dump for x\n" + chunk + chunk + "Sum Total of in-use chunks: 8B\n");
  const BfcPool pool = scanner.finish()[0].pool;
  EXPECT_EQ(pool.chunks.size(), 1u);
  EXPECT_EQ(pool.more_chunks, 1u);
  EXPECT_FALSE(picture_of(pool).unasked_bytes);
}

}  // namespace
}  // namespace gpumemprof
