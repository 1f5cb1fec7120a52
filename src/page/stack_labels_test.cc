#include "page/stack_labels.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

class StackLabels : public testing::Test {
 protected:
  /// A stack by its frames, the outermost first: file, line and function.
  struct Call {
    const char* file;
    uint32_t line;
    const char* function;
  };
  uint32_t stack(std::initializer_list<Call> calls) {
    uint32_t node = 0;
    for (const Call& call : calls) {
      const uint32_t function = tables_.strings.intern(call.function);
      const uint32_t file = tables_.strings.intern(call.file);
      node = tables_.stacks.push(node, tables_.stacks.intern_frame({file, function, call.line}));
    }
    return node;
  }
  using Labels = std::vector<std::string>;
  Tables tables_;
  const Call main_ = {"/job/a.py", 1, "main"}, f_ = {"/job/a.py", 7, "f"};
  const Call relu_ = {"/usr/lib/python3/dist-packages/torch/nn/functional.py", 3, "relu"};
  const Call silu_ = {"/usr/lib/python3/dist-packages/torch/nn/functional.py", 9, "silu"};
};

TEST_F(StackLabels, DifferentLinesAreTheirOwnNames) {
  const uint32_t stacks[] = {stack({main_, f_}), stack({main_})};
  EXPECT_EQ(stack_labels(tables_, stacks), (Labels{"/job/a.py:7 f", "/job/a.py:1 main"}));
}

TEST_F(StackLabels, TheSameLineIsToldByTheNearestCallerThatDiffers) {
  const Call g = {"/job/a.py", 12, "g"}, h = {"/job/a.py", 20, "h"}, k = {"/job/a.py", 30, "k"};
  const uint32_t stacks[] = {stack({main_, g, k, f_}), stack({main_, h, k, f_}), stack({f_})};
  // Not all have k as their caller; the two that have it are told apart by the next frame.
  EXPECT_EQ(stack_labels(tables_, stacks),
            (Labels{"/job/a.py:7 f ← /job/a.py:30 k ← /job/a.py:12 g",
                    "/job/a.py:7 f ← /job/a.py:30 k ← /job/a.py:20 h", "/job/a.py:7 f"}));
}

TEST_F(StackLabels, ElseByWhatTheLineCalled) {
  const uint32_t stacks[] = {stack({main_, f_, relu_}), stack({main_, f_, silu_})};
  EXPECT_EQ(stack_labels(tables_, stacks),
            (Labels{"/job/a.py:7 f → …/torch/nn/functional.py:3 relu",
                    "/job/a.py:7 f → …/torch/nn/functional.py:9 silu"}));
}

TEST_F(StackLabels, WhatIsTheSameHasANumber) {
  const uint32_t one = stack({main_, f_});
  const uint32_t stacks[] = {one, one};
  EXPECT_EQ(stack_labels(tables_, stacks), (Labels{"/job/a.py:7 f", "/job/a.py:7 f (2)"}));
  EXPECT_TRUE(stack_labels(tables_, {}).empty());
}

}  // namespace
}  // namespace gpumemprof
