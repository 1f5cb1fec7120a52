// Which gradients are whose: those of parameters that no optimizer updates, and the others.
#include <gtest/gtest.h>

#include <map>

#include "analysis/advice/practices.h"
#include "analysis/leaks/leaks.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/label_frames.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMiB = 1 << 20;

/// A run of one device, with what it held at its peak, by line, module and category.
struct HeldAtPeak {
  HeldAtPeak() {
    tables.processes.resize(2);
    tables.threads = {{0, 11, "t"}, {1, 12, "u"}};
    tables.devices.resize(1);
    analysis.devices.resize(1);
    analysis.devices[0].categories.is_known = true;
  }
  uint32_t stack(uint32_t line, const char* module, const char* node = "") {
    uint32_t out = push(0, "/me/train.py", "fit", line);
    out = push(out, kModuleFile, module, 0);
    return *node ? push(out, kBackwardFile, node, 0) : out;
  }
  /// Of a model that the line makes by a function of the program's own.
  uint32_t made_by(uint32_t line, uint32_t in_function) {
    return push(push(0, "/me/train.py", "fit", line), "/me/train.py", "make", in_function);
  }
  void hold(Category category, uint32_t stack, uint64_t bytes, const char* name = "") {
    analysis.devices[0].figures.peak_bytes += bytes;
    analysis.devices[0].holders_at_peak.push_back({stack, bytes, 1});
    analysis.devices[0].categories.at_peak.push_back({.stack = stack,
                                                      .category = category,
                                                      .name = tables.strings.intern(name),
                                                      .bytes = bytes,
                                                      .count = 1});
  }
  /// DistributedDataParallel makes its buckets anew.
  uint32_t reducer() {
    return push(push(0, "/me/train.py", "fit", 7), "/x/torch/nn/parallel/distributed.py",
                "DistributedDataParallel._pre_forward", 1600);
  }
  uint32_t gradient(const char* module) { return stack(9, module, "AddmmBackward0"); }
  std::vector<PracticeCandidate> candidates(decltype(find_gradient_practices) find) const {
    std::vector<PracticeCandidate> out;
    find({analysis, tables, graph}, &out);
    return out;
  }

  Analysis analysis;
  Tables tables;
  GraphEvidence graph;

 private:
  uint32_t push(uint32_t parent, std::string_view file, std::string_view text, uint32_t line) {
    const Frame frame{tables.strings.intern(file), tables.strings.intern(text), line};
    return tables.stacks.push(parent, tables.stacks.intern_frame(frame));
  }
};

std::vector<std::pair<std::string, uint64_t>> kinds_and_first_bytes(
    const std::vector<PracticeCandidate>& candidates) {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (const PracticeCandidate& one : candidates)
    out.emplace_back(one.advice.kind, one.advice.evidence.front().second);
  return out;
}

using Told = std::vector<std::pair<std::string, uint64_t>>;

TEST(GradientPractices, WhatNoOptimizerUpdatesIsNotKeptByOne) {
  HeldAtPeak run;
  run.hold(Category::kGradient, run.gradient("1"), 1000, "1.weight");
  run.hold(Category::kGradient, run.gradient("Student.1"), 40);
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of Student.1.weight");
  const auto found = run.candidates(find_gradient_practices);
  EXPECT_EQ(kinds_and_first_bytes(found),
            (Told{{"gradients_unused", 1000}, {"gradients_kept", 40}}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[1].change.group_of.contains(run.gradient("1"))) << "nor simulated as kept";
  EXPECT_TRUE(found[1].change.group_of.contains(run.gradient("Student.1")));
}

/// A block of the gradients of several parameters is of all of them, whichever module's backward pass
/// made it, and no zero_grad() frees a bucket.
TEST(GradientPractices, ABlockOfSeveralGradientsIsNeitherUnusedNorKept) {
  HeldAtPeak run;
  run.hold(Category::kGradient, run.gradient("blocks.3"), 1000, "12 gradients of blocks.3.*");
  run.hold(Category::kGradient, run.gradient("blocks.3"), 500, "12 gradients");
  run.hold(Category::kGradient, run.reducer(), 400, "head.weight");
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of blocks.3.norm.weight");
  EXPECT_EQ(kinds_and_first_bytes(run.candidates(find_gradient_practices)), Told());
}

/// As of a decoder that reads the weight of an embedding: the parameter's name tells whose it is.
TEST(GradientPractices, AGradientIsOfItsParameterWhereverItIsMade) {
  HeldAtPeak run;
  run.hold(Category::kGradient, run.gradient("decoder.out.0"), 1000, "encoder.emb.weight");
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of encoder.emb.weight");
  EXPECT_EQ(kinds_and_first_bytes(run.candidates(find_gradient_practices)),
            (Told{{"gradients_kept", 1000}}));
}

TEST(GradientPractices, GradientsBesideTheirBucketsAreThereTwice) {
  HeldAtPeak run;
  run.hold(Category::kFrameworkOther, run.reducer(), 400);
  run.hold(Category::kFrameworkOther, run.stack(8, "table"), 70);
  run.hold(Category::kGradient, run.gradient("head"), 400, "head.weight");
  run.hold(Category::kGradient, run.gradient("input"), 30);
  std::vector<PracticeCandidate> found = run.candidates(find_gradient_practices);
  std::erase_if(found, [](const auto& one) { return one.advice.kind != "gradients_copied"; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.evidence, (Told{{"bucket_bytes", 400}}));
  EXPECT_EQ(found[0].change.rule, TraceChange::Rule::kHeldOnce);
  EXPECT_EQ(found[0].change.group_of,
            (decltype(TraceChange::group_of){{run.gradient("head"), 0}, {run.reducer(), 1}}));
}

/// Its gradients go; of what it computed goes what comes of no other model's results.
TEST(GradientPractices, WhatAModelThatIsNotTrainedComputesOfOthersStays) {
  HeldAtPeak run;
  const uint32_t judged = run.stack(8, "Judge.1"), painted = run.stack(7, "Painter.1");
  run.hold(Category::kGradient, run.gradient("Judge.1"), 1000, "Judge.1.weight");
  run.hold(Category::kActivation, judged, 200);
  run.hold(Category::kActivation, painted, 30);
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of Painter.1.weight");
  run.graph.by_stack = {{judged, {}}, {painted, {}}, {run.stack(8, "Judge"), {}}};
  const auto found = run.candidates(find_gradient_practices);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.fix, "Call requires_grad_(False) once on the model that is not trained");
  EXPECT_EQ(found[0].advice.evidence, (Told{{"gradient_bytes", 1000}, {"activation_bytes", 200}}));
  const TraceChange& change = found[0].change;
  EXPECT_EQ(change.group_of.at(run.gradient("Judge.1")), 0u);
  EXPECT_EQ(change.group_of.at(judged), TraceChange::kUnlessDerived);
  EXPECT_TRUE(change.group_of.contains(run.stack(8, "Judge")));
  EXPECT_EQ(change.sources, absl::flat_hash_set<uint32_t>{painted});
}

/// Two models that one line makes: the line that calls it is told where it makes no other model.
TEST(GradientPractices, TheModelThatIsNotTrainedIsToldByTheLineThatMakesItAlone) {
  HeldAtPeak run;
  const auto weight = [&](uint32_t line, const char* name) {
    run.hold(Category::kParameter, run.made_by(line, 9), 1000, name);
  };
  weight(11, "1.weight");
  weight(12, "Student.1.weight");
  run.hold(Category::kGradient, run.gradient("1"), 1000, "1.weight");
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of Student.1.weight");
  EXPECT_EQ(run.candidates(find_gradient_practices).at(0).advice.fix,
            "Call requires_grad_(False) once on the model that is not trained, made at "
            "train.py:11");
  weight(13, "2.weight");
  EXPECT_EQ(run.candidates(find_gradient_practices).at(0).advice.fix,
            "Call requires_grad_(False) once on the model that is not trained")
      << "of two lines";
}

/// A metric keeps what softmax made, after the backward pass of its graph. A block of the same module
/// that another operation reads has a graph.
TEST(ActivationPractices, AValueThatIsKeptIsNoGraphThatIsNotNeeded) {
  HeldAtPeak run;
  const uint32_t kept = run.stack(15, "");
  run.hold(Category::kActivation, kept, 4000);
  run.graph.by_stack[kept] = {.after_backward = 9, .without_backward = 1, .largest_bytes = 400};
  run.graph.backward_passes = 10;
  EXPECT_TRUE(run.candidates(find_activation_practices).empty());
  run.graph.by_stack[kept].read_by_others = 1;
  EXPECT_EQ(run.candidates(find_activation_practices).at(0).advice.kind, "graph_not_needed");
}

/// The gradient of log_softmax is as large as probabilities that a metric keeps.
TEST(OperationPractices, ProbabilitiesThatNoBackwardPassUsedAreOfNoLoss) {
  HeldAtPeak run;
  const uint32_t kept = run.stack(15, "");
  run.hold(Category::kActivation, kept, 4000);
  run.graph.allocated[kept] = {.count = 10, .largest_bytes = 400};
  run.graph.allocated[run.stack(14, "", "LogSoftmaxBackward0")] = {.count = 10,
                                                                   .largest_bytes = 400};
  run.graph.by_stack[kept] = {.in_backward = 9, .without_backward = 1};
  EXPECT_EQ(kinds_and_first_bytes(run.candidates(find_operation_practices)),
            (Told{{"chunked_loss", 4000}}));
  run.graph.by_stack[kept] = {.after_backward = 9, .without_backward = 1};
  EXPECT_TRUE(run.candidates(find_operation_practices).empty());
}

TEST(GradientPractices, ADerivativeThatTheProgramAskedForIsNoUnusedGradient) {
  HeldAtPeak run;
  run.hold(Category::kGradient, run.gradient("1"), 1000);
  run.hold(Category::kGradient, run.gradient("Student.1"), 40, "Student.1.weight");
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of Student.1.weight");
  EXPECT_EQ(kinds_and_first_bytes(run.candidates(find_gradient_practices)),
            (Told{{"gradients_kept", 40}}));
}

TEST(GradientPractices, AModelWhoseOptimizerIsGoneWasTrained) {
  HeldAtPeak run;
  run.hold(Category::kGradient, run.gradient("Net#1.0"), 1000, "Net#1.0.weight");
  run.hold(Category::kGradient, run.gradient("Net#2.0"), 40);
  run.hold(Category::kOptimizerState, run.stack(10, ""), 80, "exp_avg of Net#2.0.weight");
  const uint32_t name = run.tables.strings.intern("exp_avg of Net#1.0.weight");
  run.graph.optimizer_states = {{1, name}};
  EXPECT_EQ(kinds_and_first_bytes(run.candidates(find_gradient_practices)).front(),
            (Told::value_type{"gradients_unused", 1000}))
      << "another process trained it";
  run.graph.optimizer_states = {{0, name}};
  EXPECT_EQ(kinds_and_first_bytes(run.candidates(find_gradient_practices)),
            (Told{{"gradients_kept", 1040}}));
}

/// Of a file without steps: 3 bytes of gradients that the peak, event 5, found idle, and others.
TEST(GradientPractices, IdleGradientsOfASnapshotAreKept) {
  HeldAtPeak run;
  const uint32_t made = run.gradient(""), freed = run.stack(105, "");
  run.hold(Category::kGradient, made, 9);
  run.analysis.devices[0].categories.is_by_rules = true;
  run.analysis.devices[0].own_peak_event = 5;
  EXPECT_TRUE(run.candidates(find_gradient_practices).empty()) << "all of them are in use";
  run.analysis.devices[0].categories.idle_gradients = {
      {.begin_event = 5, .end_event = 6, .size_bytes = 2, .stack = made, .freed_at = freed},
      {.begin_event = 0, .end_event = 7, .size_bytes = 1, .stack = made},
      {.begin_event = 6, .end_event = 7, .size_bytes = 8, .stack = made},
      {.begin_event = 1, .end_event = 5, .size_bytes = 8, .stack = made}};
  const auto found = run.candidates(find_gradient_practices);
  EXPECT_EQ(kinds_and_first_bytes(found), (Told{{"gradients_kept", 3}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.title,
            "gradients stay allocated into the next step, until train.py:105 frees them: 3 B at "
            "the peak");
  EXPECT_EQ(found[0].change.rule, TraceChange::Rule::kGoneWhileIdle);
  EXPECT_EQ(found[0].change.idle.size(), 4u) << "the whole run changes";
}

/// Tables of 12 and 7 MiB of which a lookup touches 1 MiB each, and one of 2 MiB that it touches
/// half of.
TEST(GradientPractices, EachEmbeddingHasItsOwnGradientAndLookup) {
  HeldAtPeak run;
  const auto embedding = [&](const char* module, uint64_t table_bytes) {
    run.hold(Category::kGradient, run.stack(9, module, "EmbeddingBackward0"), table_bytes);
    run.graph.allocated[run.stack(7, module)].largest_bytes = kMiB;
  };
  const auto sparse = [&] {
    std::vector<PracticeCandidate> found = run.candidates(find_gradient_practices);
    std::erase_if(found, [](const auto& one) { return one.advice.kind != "sparse_gradient"; });
    return found;
  };
  embedding("item.emb", 7 * kMiB);
  embedding("word.emb", 2 * kMiB);
  ASSERT_EQ(sparse().size(), 1u);
  EXPECT_EQ(sparse()[0].advice.title,
            "the gradient of the embedding item.emb has 7.00 MiB, while a lookup touches at most "
            "1.00 MiB of rows");
  embedding("user.emb", 12 * kMiB);
  ASSERT_EQ(sparse().size(), 1u);
  const PracticeCandidate found = sparse()[0];
  EXPECT_EQ(found.advice.title,
            "the gradients of 2 embeddings have 19.0 MiB (user.emb 12.0 MiB, item.emb 7.00 MiB), "
            "while lookups touch at most 2.00 MiB of rows");
  EXPECT_EQ(found.advice.evidence, (Told{{"gradient_bytes", 19 * kMiB}, {"lookup_bytes", 2 * kMiB}}));
  EXPECT_EQ(found.change.group_of.size(), 2u);
  EXPECT_EQ(found.change.stays_bytes, 2 * kMiB);
}

/// Three optimizers of 800 B each for one weight, and what one would keep.
TEST(OperationPractices, StateOfOlderOptimizersOfTheSameParametersIsToldBesideOne) {
  HeldAtPeak run;
  for (int i = 0; i < 3; ++i)
    run.hold(Category::kOptimizerState, run.stack(10 + i, ""), 800, "exp_avg of Net.0.weight");
  const auto held = [&] { return kinds_and_first_bytes(run.candidates(find_operation_practices)); };
  EXPECT_EQ(held(), (Told{{"optimizer_recreated", 1600}, {"optimizer_state", 800}}));
  run.analysis.findings = {{.kind = FindingKind::kLeak, .name = "optimizer_recreated"}};
  EXPECT_EQ(held(), (Told{{"optimizer_state", 800}})) << "as a leak";
  run.analysis.findings.clear();
  run.hold(Category::kOptimizerState, run.stack(10, ""), 300, "d of Net.0.weight");
  EXPECT_EQ(held(), (Told{{"optimizer_state", 2700}})) << "a list in the state of one";
}

/// As Pyro's optimizers: one for each parameter, called by its place alone.
TEST(OperationPractices, OptimizersOfParametersOfTheirOwnAreNotOlderOnes) {
  HeldAtPeak run;
  for (int i = 0; i < 4; ++i)
    run.hold(Category::kOptimizerState, run.stack(10 + i, ""), 800,
             "exp_avg of Adam group 0 parameter 0");
  run.hold(Category::kParameter, run.stack(5, ""), 800, "Adam group 0 parameter 0");
  const auto held = [&] { return kinds_and_first_bytes(run.candidates(find_operation_practices)); };
  EXPECT_EQ(held(), (Told{{"optimizer_recreated", 2400}, {"optimizer_state", 800}}));
  for (int i = 0; i < 3; ++i)
    run.hold(Category::kParameter, run.stack(6 + i, ""), 800, "Adam group 0 parameter 0");
  EXPECT_EQ(held(), (Told{{"optimizer_state", 3200}}));
}

/// Passes: of the first model 1 to 20, of the second 21 to 40.
TEST(OperationPractices, TheStateOfAnOptimizerThatStepsNoMoreIsNotItsChoice) {
  HeldAtPeak run;
  for (const char* name : {"exp_avg of Net#1.0.weight", "exp_avg of Net#2.0.weight"})
    run.hold(Category::kOptimizerState, run.stack(10, ""), 800, name);
  const uint32_t first_stack = run.gradient("Net#1.0");
  run.graph.allocated[run.gradient("Net#2.0")] = {.last_pass = 40, .longest_pause = 1};
  StackSizes& first = run.graph.allocated[first_stack];
  const auto held = [&] { return kinds_and_first_bytes(run.candidates(find_operation_practices)); };
  first = {.last_pass = 20, .longest_pause = 1};
  EXPECT_EQ(held(), (Told{{"optimizer_state", 800}}));
  first = {.last_pass = 20, .longest_pause = 10};
  EXPECT_EQ(held(), (Told{{"optimizer_state", 1600}})) << "it takes turns, 20 passes are two";
  first = {};
  EXPECT_EQ(held(), (Told{{"optimizer_state", 1600}})) << "no pass of it is known";
}

/// Of 4 MiB at the peak, in the third step: weights, two gradients of the steps before, and what
/// the step makes. A leak of the gradients' line is about the same two blocks.
TEST(Practices, TheSameBlocksAreOfferedOnce) {
  HeldAtPeak run;
  const uint32_t weights = run.stack(2, "net.0"), made = run.stack(7, "net.1");
  const uint32_t gradients[] = {run.gradient("net.0"), run.gradient("Net#2.0")};
  run.hold(Category::kParameter, weights, kMiB);
  run.hold(Category::kActivation, made, kMiB);
  for (const uint32_t stack : gradients) run.hold(Category::kGradient, stack, kMiB);
  EventBatch events;
  uint64_t at = 0;
  const auto allocate = [&](uint32_t stack) {
    append(&events, {.time_ns = ++at, .address = at, .size_bytes = kMiB, .stack = stack});
  };
  const auto end_step = [&] {
    events.marks.push_back({static_cast<uint32_t>(events.size()), MarkKind::kStep, 0, 0, ++at});
  };
  allocate(weights);
  for (const uint32_t stack : gradients) allocate(stack), end_step();
  allocate(made);
  const SourceOpener open = [&]() -> Result<std::unique_ptr<EventSource>> {
    auto source = std::make_unique<MemorySource>(events);
    source->mutable_tables() = run.tables;
    return source;
  };
  run.analysis.findings.push_back(
      {.kind = FindingKind::kLeak, .name = "hook_stores", .title = "a hook", .stack = gradients[0],
       .stacks = {gradients[0], gradients[1]}});
  const auto report = advise_on_recording(run.analysis, run.tables, open, {});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->advice.size(), 1u);
  EXPECT_EQ(report->advice[0].kind, "gradients_kept");
  EXPECT_EQ(report->advice[0].bytes, 2 * kMiB);
}

/// Weights of 1 MiB, and four results of 1 MiB that nobody runs a backward pass for; a leak keeps
/// them. Without the graph two are live at a time.
TEST(Practices, AGraphThatNothingNeededIsTheFixOfALeakThatKeepsIt) {
  HeldAtPeak run;
  const uint32_t weights = run.stack(2, "net.0"), made = run.stack(11, "net.1");
  run.hold(Category::kParameter, weights, kMiB);
  run.hold(Category::kActivation, made, 4 * kMiB);
  EventBatch events;
  uint64_t at = 0;
  const auto allocate = [&](uint64_t address, uint32_t stack) {
    append(&events, {.time_ns = ++at, .address = address, .size_bytes = kMiB, .stack = stack});
  };
  allocate(9, weights);
  for (uint64_t address = 1; address <= 4; ++address) {
    allocate(address, made);
    events.marks.push_back({static_cast<uint32_t>(events.size()), MarkKind::kSaved, 0, 0, ++at,
                            address, kSavedIsOutput | kSavedHasHistory});
  }
  for (uint64_t address = 1; address <= 4; ++address)
    append(&events, {.time_ns = ++at, .action = Action::kFreeCompleted, .address = address});
  const SourceOpener open = [&]() -> Result<std::unique_ptr<EventSource>> {
    auto source = std::make_unique<MemorySource>(events);
    source->mutable_tables() = run.tables;
    return source;
  };
  run.analysis.findings.push_back({.kind = FindingKind::kLeak,
                                   .name = "activations_kept",
                                   .title = "kept",
                                   .facts = {{"round", "train.py:11"}},
                                   .stack = leak_line(run.tables, made),
                                   .stacks = {made},
                                   .fix = "keep numbers"});
  const auto report = advise_on_recording(run.analysis, run.tables, open, {});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->advice.size(), 1u);
  EXPECT_EQ(report->advice[0].kind, "graph_not_needed");
  EXPECT_EQ(report->advice[0].bytes, 2 * kMiB);
  EXPECT_EQ(report->advice[0].fix,
            "Run what is not trained under torch.no_grad() or inference_mode(); or keep numbers");
  run.analysis.findings[0].fix = "keep numbers; an evaluation can run under torch.no_grad()";
  const auto said_once = advise_on_recording(run.analysis, run.tables, open, {});
  ASSERT_TRUE(said_once);
  EXPECT_EQ(said_once->advice.at(0).fix, run.analysis.findings[0].fix);
}

/// Four results of 1 MiB that autograd saved; then a request is refused, they are freed, and the
/// program goes on.
TEST(Practices, APassThatARefusalCutOffHadANeedOfItsGraph) {
  const auto kinds_of = [](Action between) {
    HeldAtPeak run;
    const uint32_t made = run.stack(11, "net.1");
    run.hold(Category::kActivation, made, 4 * kMiB);
    EventBatch events;
    uint64_t at = 0;
    for (uint64_t address = 1; address <= 4; ++address) {
      append(&events, {.time_ns = ++at, .address = address, .size_bytes = kMiB, .stack = made});
      events.marks.push_back({static_cast<uint32_t>(events.size()), MarkKind::kSaved, 0, 0, ++at,
                              address, kSavedIsOutput | kSavedHasHistory});
    }
    append(&events, {.time_ns = ++at, .action = between, .address = 9, .size_bytes = kMiB, .stack = made});
    for (uint64_t address = 1; address <= 4; ++address)
      append(&events, {.time_ns = ++at, .action = Action::kFreeCompleted, .address = address});
    const auto report = advise_on_recording(run.analysis, run.tables, [&] {
      auto source = std::make_unique<MemorySource>(events);
      source->mutable_tables() = run.tables;
      return Result<std::unique_ptr<EventSource>>(std::move(source));
    }, {});
    std::vector<std::string> kinds;
    for (const Advice& one : report->advice) kinds.push_back(one.kind);
    return kinds;
  };
  EXPECT_EQ(kinds_of(Action::kAlloc), std::vector<std::string>{"graph_not_needed"});
  EXPECT_EQ(kinds_of(Action::kOom), std::vector<std::string>{});
}

std::map<std::string, std::string> unknown_of(const HeldAtPeak& run) {
  const auto open = [&] {
    auto source = std::make_unique<MemorySource>(EventBatch());
    source->mutable_tables() = run.tables;
    return Result<std::unique_ptr<EventSource>>(std::move(source));
  };
  const auto report = advise_on_recording(run.analysis, run.tables, open, {});
  if (!report) return {};
  return {report->unknown.begin(), report->unknown.end()};
}

TEST(Practices, WhatASnapshotCannotTellIsNotCalledChecked) {
  HeldAtPeak run;
  EXPECT_FALSE(unknown_of(run).contains("checkpointing"));
  run.analysis.devices[0].categories.is_by_rules = true;
  run.analysis.devices[0].snapshot =
      std::make_shared<SnapshotDevice>(SnapshotDevice{.is_recorded = true});
  EXPECT_EQ(unknown_of(run).at("checkpointing"), "the recording has no modules");
  EXPECT_FALSE(unknown_of(run).contains("leak"));
  run.analysis.source.kind = SourceKind::kPytorchSnapshot;
  run.analysis.devices[0].snapshot = std::make_shared<SnapshotDevice>();
  const auto unknown = unknown_of(run);
  EXPECT_EQ(unknown.at("checkpointing"), "a snapshot has no modules");
  EXPECT_EQ(unknown.at("graph_not_needed"), "a snapshot does not tell what autograd saved");
  EXPECT_EQ(unknown.at("leak"), "leaks are looked for in recordings only");
}

/// A twentieth of 20 MiB is the least that is said.
TEST(Practices, GradientsOfAnEarlierStepAreNotCheckedWhereNothingTellsWhetherTheyAreNeeded) {
  HeldAtPeak run;
  DeviceAnalysis& device = run.analysis.devices[0];
  run.analysis.source.kind = SourceKind::kPytorchSnapshot;
  device.snapshot = std::make_shared<SnapshotDevice>();
  device.categories.is_by_rules = true;
  device.figures.peak_bytes = 20 * kMiB;
  device.categories.earlier_gradient_bytes = kMiB - 1;
  EXPECT_FALSE(unknown_of(run).contains("gradients_kept"));
  device.categories.earlier_gradient_bytes = kMiB;
  EXPECT_EQ(unknown_of(run).at("gradients_kept"),
            "gradients of an earlier step hold 1.00 MiB at the peak; a snapshot does not tell "
            "whether they are needed");
}

TEST(Practices, DevicesThatTheFileShowsAreNotUnknown) {
  HeldAtPeak run;
  run.tables.devices = {Device{.type = 1, .index = 0}, Device{.type = 1, .index = 1},
                        Device{.process = 1, .type = 1, .index = 0}};
  EXPECT_EQ(unknown_of(run).at("distributed"),
            "a recording does not say how many devices there were");
  run.analysis.devices.resize(2);
  run.analysis.devices[1].device = 2;
  EXPECT_EQ(unknown_of(run).at("distributed"),
            "a recording does not say how many devices there were")
      << "two processes used the same one";
  run.analysis.devices[1].device = 1;
  EXPECT_EQ(unknown_of(run).at("distributed"), "what sharding saves is not simulated");
}

}  // namespace
}  // namespace gpumemprof
