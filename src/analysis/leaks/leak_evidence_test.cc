#include "analysis/leaks/leak_evidence.h"

#include <gtest/gtest.h>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

/// A leak of three stacks: 100 bytes a step in no module, 80 and 70 in that of `first` and
/// `second`.
std::string module_of_leak(std::string_view first, std::string_view second) {
  Tables tables;
  const auto frame = [&](std::string_view file, std::string_view function, uint32_t line) {
    return tables.stacks.intern_frame(
        {tables.strings.intern(file), tables.strings.intern(function), line});
  };
  const uint32_t own = tables.stacks.push(0, frame("/srv/me/train.py", "main", 7));
  Leak leak{.node = own, .bytes_a_step = 250};
  leak.stacks.push_back({.stack = own, .growth = {.bytes_a_step = 100}});
  // The module is at the inner end; an outer one has called it.
  const uint32_t outer = tables.stacks.push(own, frame(kModuleFile, "model", 0));
  leak.stacks.push_back({.stack = tables.stacks.push(outer, frame(kModuleFile, first, 0)),
                         .growth = {.bytes_a_step = 80}});
  leak.stacks.push_back({.stack = tables.stacks.push(outer, frame(kModuleFile, second, 0)),
                         .growth = {.bytes_a_step = 70}});
  return evidence_of(leak, AllLeaks({leak}, tables, {}), tables, HolderStacks(nullptr), {}).module;
}

TEST(LeakEvidence, TheModuleIsTheInnermostOfMostOfTheGrowth) {
  EXPECT_EQ(module_of_leak("model.lstm", "model.lstm"), "model.lstm");
  EXPECT_EQ(module_of_leak("model.lstm", "model.head"), "") << "100 bytes are made in none";
  EXPECT_EQ(module_of_leak("model.2.attn", "model.3.attn"), "model.*.attn") << "150 of 250 bytes";
}

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;  // file, function

/// Of two leaks whose one stack has these frames, the outer first.
LeakEvidence evidence_of_labels(const Labels& labels, const ToldOfStack& told = {}) {
  Tables tables;
  uint32_t stack = 0;
  for (const auto& [file, function] : labels) {
    const Frame frame{tables.strings.intern(file), tables.strings.intern(function), 0};
    stack = tables.stacks.push(stack, tables.stacks.intern_frame(frame));
  }
  Leak leak{.node = stack, .bytes_a_step = 100};
  leak.stacks.push_back({.stack = stack, .growth = {.bytes_a_step = 100}});
  return evidence_of(leak, AllLeaks({leak, leak}, tables, told), tables, HolderStacks(nullptr), told);
}

TEST(LeakEvidence, ABackwardPassWithGradientsOnHasCreateGraph) {
  const auto created = evidence_of_labels({{kBackwardFile, "TanhBackward0"}});
  EXPECT_TRUE(created.in_backward && created.has_create_graph && created.whole_graph);
  const auto plain = evidence_of_labels({{kModeFile, kNoGrad}, {kBackwardFile, "TanhBackward0"}});
  EXPECT_TRUE(plain.in_backward);
  EXPECT_FALSE(plain.has_create_graph || plain.whole_graph);
  EXPECT_FALSE(evidence_of_labels({{kModuleFile, "net"}}).has_create_graph);
}

TEST(LeakEvidence, TheHistoryOfLbfgsIsMadeInItsStepAndNotInItsClosure) {
  const std::string_view lbfgs = "/lib/torch/optim/lbfgs.py";
  const auto history = evidence_of_labels({{"/srv/me/train.py", "main"}, {lbfgs, "LBFGS.step"}});
  EXPECT_TRUE(history.in_optimizer && history.in_lbfgs);
  EXPECT_FALSE(evidence_of_labels({{lbfgs, "LBFGS.step"}, {kModuleFile, "net"}}).in_lbfgs);
  EXPECT_FALSE(evidence_of_labels({{"/lib/torch/optim/adam.py", "Adam.step"}}).in_lbfgs);
}

TEST(LeakEvidence, WhatAFunctionOfTheProgramOrAutogradSavedHasAGraph) {
  const Labels no_grad = {{kModeFile, kNoGrad}, {kModuleFile, "net"}};
  EXPECT_TRUE(evidence_of_labels(no_grad).without_graph);
  EXPECT_FALSE(evidence_of_labels(no_grad, {.is_saved = [](uint32_t) { return true; }})
                   .without_graph);
  EXPECT_FALSE(evidence_of_labels({{"/lib/torch/autograd/function.py", "Function.apply"},
                                   {kModeFile, kNoGrad},
                                   {kModuleFile, "net"}})
                   .without_graph);
}

}  // namespace
}  // namespace gpumemprof
