#include "analysis/advice/tensorflow_advice.h"

#include <gtest/gtest.h>

#include "base/size.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

constexpr const char* kSite = "/venv/lib/python3.11/site-packages/";
const std::vector<std::string> kOtherCall{"train.py"};

/// A recording of one memory of TensorFlow's, built an op at a time; what it holds is
/// never freed, what it uses is before the end.
class Recording {
 public:
  explicit Recording(Device device = {.type = kTensorflowCpu, .index = 0, .name = "cpu"}) {
    tables_.processes = {{.pid = 7, .command = "python train.py"}};
    tables_.threads = {{.process = 0, .tid = 7}};
    tables_.devices = {device};
  }
  Recording& holds(uint64_t bytes, const std::vector<std::string>& files, const char* op,
                   uint16_t device = 0) {
    uint32_t stack = 0;
    for (const std::string& file : files) stack = push(stack, file, "f", 1);
    if (*op) stack = push(stack, "<tensorflow>", op, 0);
    append(&events_,
           {1000 + 10 * next_, Action::kAlloc, 0x1000 * ++next_, bytes, stack, 0, device});
    return *this;
  }
  Recording& uses(uint64_t bytes, const std::vector<std::string>& files, const char* op) {
    holds(bytes, files, op);
    used_.push_back(next_);
    return *this;
  }
  void add_device(const Device& device) { tables_.devices.push_back(device); }
  AdviceReport advice(std::vector<Finding> findings = {}) {
    for (const uint64_t number : used_) {
      append(&events_, {.time_ns = 1000 + 10 * next_++,
                        .action = Action::kFreeCompleted,
                        .address = 0x1000 * number});
    }
    if (!used_.empty()) holds(8, kOtherCall, "");
    MemorySource source(std::move(events_));
    source.mutable_tables() = std::move(tables_);
    Analysis analysis = *analyze_source(source, {});
    for (Finding& finding : findings) analysis.findings.push_back(std::move(finding));
    return advise_tensorflow(analysis, source.tables());
  }

 private:
  uint32_t push(uint32_t parent, const std::string& file, const char* function, uint32_t line) {
    StringTable& strings = tables_.strings;
    return tables_.stacks.push(parent, tables_.stacks.intern_frame(
                                           {strings.intern(file), strings.intern(function), line}));
  }
  Tables tables_;
  EventBatch events_;
  uint64_t next_ = 0;
  std::vector<uint64_t> used_;
};

const std::vector<std::string> kEagerCall{
    "train.py", std::string(kSite) + "tensorflow/python/ops/gen_math_ops.py"};
const std::vector<std::string> kGraphCall{
    "train.py",
    std::string(kSite) + "tensorflow/python/eager/polymorphic_function/atomic_function.py"};
const std::vector<std::string> kNewVariable{
    "train.py", std::string(kSite) + "keras/src/initializers/random_initializers.py"};
const std::vector<std::string> kExecutor;

std::vector<std::string> kinds(const AdviceReport& report) {
  std::vector<std::string> out;
  for (const Advice& one : report.advice) out.push_back(one.kind);
  return out;
}

bool is_unknown(const AdviceReport& report, const std::string& kind) {
  for (const auto& [name, why] : report.unknown) {
    if (name == kind) return !why.empty();
  }
  return false;
}

using Kinds = std::vector<std::string>;

TEST(TensorflowAdvice, OpsThatRanOneByOneAreToldWithTheirBytes) {
  const auto report = Recording()
                          .holds(2 * kMiB, kNewVariable, "Mul")
                          .uses(6 * kMiB, kEagerCall, "MatMul")
                          .advice();
  ASSERT_EQ(kinds(report), Kinds{"tf_function"});
  EXPECT_EQ(report.advice[0].bytes, 6 * kMiB);
  EXPECT_EQ(report.advice[0].evidence[1],
            (std::pair<std::string, uint64_t>("peak_bytes", 8 * kMiB)));
}

TEST(TensorflowAdvice, WhatIsKeptToTheEndIsKeptInAGraphAsWell) {
  EXPECT_EQ(kinds(Recording().holds(64 * kMiB, kEagerCall, "MatMul").advice()), Kinds{});
}

TEST(TensorflowAdvice, GradientsOfTheLastStepAreOfEagerOperationsThoughTheyAreThereAtTheEnd) {
  const std::vector<std::string> tape{"train.py",
                                      std::string(kSite) + "tensorflow/python/eager/backprop.py"};
  const auto report = Recording().holds(22 * kMiB, tape, "MatMul").advice();
  ASSERT_EQ(kinds(report), Kinds{"tf_function"});
  EXPECT_EQ(report.advice[0].bytes, 22 * kMiB);
}

TEST(TensorflowAdvice, VariablesAreEagerByNature) {
  EXPECT_EQ(kinds(Recording().holds(64 * kMiB, kNewVariable, "StatelessRandomUniformV2").advice()),
            Kinds{});
}

TEST(TensorflowAdvice, LayersWithoutCastsCanTakeHalf) {
  const auto report =
      Recording()
          .holds(8 * kMiB, kExecutor, "StatefulPartitionedCall/sequential_1/d2_1/Relu")
          .holds(4 * kMiB, kGraphCall, "StatefulPartitionedCall/adam/Square_2")
          .holds(64, kNewVariable, "Mul")
          .advice();
  ASSERT_EQ(kinds(report), Kinds{"mixed_precision"});
  EXPECT_EQ(report.advice[0].bytes, 4 * kMiB);
  EXPECT_NE(report.advice[0].fix.find("mixed_bfloat16"), std::string::npos);
  EXPECT_EQ(report.advice[0].cost, "steps may take longer: most CPUs emulate half precision");
}

TEST(TensorflowAdvice, ALeakOfLessThanA20thOfThePeakIsNoSuggestion) {
  Finding leak;
  leak.kind = FindingKind::kLeak, leak.bytes = 2 * kMiB;
  EXPECT_EQ(kinds(Recording().holds(42 * kMiB, kEagerCall, "MatMul").advice({leak})), Kinds{});
}

TEST(TensorflowAdvice, AScopeThatKerasDoesNotNameIsNoLayerBesideThoseThatItNames) {
  const auto report =
      Recording()
          .holds(16 * kMiB, kExecutor, "stateless_random_normal/StatelessRandomNormalV2")
          .holds(8 * kMiB, {"<layer>"}, "StatefulPartitionedCall/rec_1/dense_1/Relu")
          .holds(64, kNewVariable, "Mul")
          .advice();
  ASSERT_EQ(kinds(report), Kinds{"mixed_precision"});
  EXPECT_EQ(report.advice[0].evidence[0].second, 8 * kMiB) << "a data set that cache() keeps is none";
}

TEST(TensorflowAdvice, AScopeWithoutKerasIsNoLayer) {
  const auto report = Recording()
                          .holds(80 * kMiB, {"train.py"}, "stateless_uniform/RandomUniformV2")
                          .holds(64, kExecutor, "StatefulPartitionedCall/stateless_uniform/Mul")
                          .advice();
  EXPECT_EQ(kinds(report), Kinds{});
  EXPECT_TRUE(is_unknown(report, "mixed_precision"));
}

TEST(TensorflowAdvice, BesideALeakOfMostOfThePeakNothingElseIsSuggested) {
  Recording recording;
  recording.holds(42 * kMiB, kEagerCall, "RandomStandardNormal");
  Finding leak;
  leak.kind = FindingKind::kLeak, leak.bytes = 22 * kMiB;
  leak.name = "function_retraced", leak.title = "train.py:7 keeps more", leak.fix = "make it once";
  const auto report = recording.advice({leak});
  ASSERT_EQ(kinds(report), Kinds{"function_retraced"});
  EXPECT_EQ(report.advice[0].bytes, 22 * kMiB);
  EXPECT_EQ(report.advice[0].title, leak.title);
  EXPECT_EQ(report.advice[0].fix, leak.fix);
  EXPECT_EQ(report.unknown[0],
            (std::pair<std::string, std::string>(
                "tf_function", "a leak has 22.0 MiB of the peak: end it, and record again")));
}

TEST(TensorflowAdvice, LeaksThatHaveMostOfThePeakTogetherCountTogether) {
  Recording recording;
  recording.holds(42 * kMiB, kEagerCall, "RandomStandardNormal");
  Finding one, other;
  one.kind = other.kind = FindingKind::kLeak;
  one.bytes = 12 * kMiB, other.bytes = 10 * kMiB;
  EXPECT_EQ(recording.advice({one, other}).unknown[0],
            (std::pair<std::string, std::string>(
                "tf_function", "2 leaks have 22.0 MiB of the peak: end them, and record again")));
}

TEST(TensorflowAdvice, AProgramThatUsesMixedPrecisionAndTfDataIsToldNeither) {
  const auto report =
      Recording()
          .holds(8 * kMiB, kExecutor, "StatefulPartitionedCall/sequential_1/d2_1/Relu")
          .holds(64, kExecutor, "StatefulPartitionedCall/sequential_1/d2_1/Cast")
          .holds(9 * kMiB, kEagerCall, "_EagerConst")
          .holds(64, kExecutor, "Iterator::Root::Prefetch")
          .advice();
  EXPECT_EQ(kinds(report), Kinds{});
}

TEST(TensorflowAdvice, TheCastOfALabelIsNoMixedPrecision) {
  EXPECT_FALSE(
      is_layer_cast("StatefulPartitionedCall/compile_loss/sparse_categorical_crossentropy/Cast"));
  EXPECT_FALSE(is_layer_cast("Cast"));
  EXPECT_FALSE(is_layer_cast("StatefulPartitionedCall/Cast_1"));
  EXPECT_TRUE(is_layer_cast("StatefulPartitionedCall/sequential_1/dense_1/Cast_3"));
  EXPECT_FALSE(is_layer_cast("sequential_1/dense_1/CastHelper"));
}

TEST(TensorflowAdvice, ArraysMadeTensorsAsAWholeAreToldWhereNothingReadsThroughTfData) {
  const auto report = Recording().holds(40 * kMiB, kEagerCall, "_EagerConst").advice();
  ASSERT_EQ(kinds(report), Kinds{"tf_data"});
  EXPECT_EQ(report.advice[0].bytes, 40 * kMiB);
}

TEST(TensorflowAdvice, WithoutNamesOfOpsItSaysThatItCannotTell) {
  const auto report = Recording().holds(40 * kMiB, kEagerCall, "").advice();
  EXPECT_TRUE(report.applies);
  EXPECT_EQ(kinds(report), Kinds{});
  for (const char* kind :
       {"tf_function", "mixed_precision", "tf_data", "allocator", "distribution"})
    EXPECT_TRUE(is_unknown(report, kind)) << kind;
}

TEST(TensorflowAdvice, WhatThePoolTookOfTheGpuAndNeverUsedIsTold) {
  Recording recording({.type = kTensorflowGpu, .index = 0, .layer = Layer::kAllocator});
  recording.add_device({.type = kTensorflowGpu, .index = 0, .layer = Layer::kDriver});
  const auto report = recording.holds(100 * kMiB, kGraphCall, "MatMul")
                          .holds(1000 * kMiB, kGraphCall, "", 1)
                          .advice();
  ASSERT_EQ(kinds(report), Kinds{"allocator"});
  EXPECT_EQ(report.advice[0].bytes, 900 * kMiB);
  EXPECT_EQ(report.advice[0].title,
            "the pool reserved 1000 MiB of the GPU and had at most 100 MiB of it in use");
}

TEST(TensorflowAdvice, LittleMemoryIsNoEvidence) {
  EXPECT_EQ(kinds(Recording().uses(kMiB - 1, kEagerCall, "MatMul").advice()), Kinds{});
  EXPECT_EQ(kinds(Recording()
                      .uses(2 * kMiB, kEagerCall, "MatMul")
                      .holds(99 * kMiB, kGraphCall, "a")
                      .advice()),
            Kinds{});
}

TEST(TensorflowAdvice, ARecordingOfPytorchHasNone) {
  const auto report = Recording({.type = 0}).holds(64 * kMiB, kEagerCall, "").advice();
  EXPECT_FALSE(report.applies);
  EXPECT_EQ(kinds(report), Kinds{});
}

}  // namespace
}  // namespace gpumemprof
