#include "report/user_code.h"

#include <gtest/gtest.h>

#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

TEST(UserCode, PackagesTheStandardLibraryAndNativeCodeAreNotTheUsers) {
  for (const char* file :
       {"train.py", "/opt/job/torch_models/a.py", "<stdin>", "<string>", "/tmp/ipykernel_1/2.py",
        "C:\\me\\train.py", "C:\\me\\lib\\train.py", "/tmp/propagate.py",
        "/tmp/my_training.py"}) {
    EXPECT_TRUE(is_user_file(file)) << file;
  }
  for (const char* file :
       {"/v/lib/python3.12/site-packages/torch/a.py", "/usr/lib/python3/dist-packages/x.py",
        "/usr/lib/python3.11/threading.py", "<frozen importlib._bootstrap>", "",
        "/x/libtorch_cpu.so", "/lib/libc.so.6", "<eval_with_key>.3", "??", "Module.cpp",
        "/tmp/torchinductor_me/ab/cab.py", "site-packages/jax/_src/core.py",
        "/tmp/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_m13y8gft.py",
        "/tmp/__main___MyConv_edge_updater_ab_2efgh.py",
        "C:\\Temp\\torch_geometric.nn.sequential_Sequential_00ff12_q1w2e3r4.py",
        "C:\\me\\.venv\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
        "C:\\Program Files\\Python312\\Lib\\copy.py",
        "C:\\uv\\python\\cpython-3.10.19-windows-x86_64-none\\lib\\copy.py",
        "C:\\Users\\me\\miniconda3\\envs\\ml\\lib\\copy.py",
        "C:\\Users\\me\\.pyenv\\pyenv-win\\versions\\3.11.9\\Lib\\copy.py"}) {
    EXPECT_FALSE(is_user_file(file)) << file;
  }
}

TEST(UserCode, TheHeadlineIsTheInnermostFrameOfTheUsersOwn) {
  MemorySource source = sample_source();
  EXPECT_EQ(headline_node(source.tables(), 3), 2u);
  EXPECT_EQ(headline_node(source.tables(), 6), 2u) << "through the standard library";
  EXPECT_EQ(headline_node(source.tables(), 4), 4u);
  EXPECT_EQ(headline_node(source.tables(), 0), 0u);
  EXPECT_EQ(headline_text(source.tables(), 2, "/opt/job"), "train.py:41 step");
  EXPECT_EQ(headline_text(source.tables(), 0, ""), "(no stack recorded)");
}

TEST(UserCode, ALineOfANotebookIsNamedByItsCell) {
  Tables tables;
  const Frame frame{.file = tables.strings.intern("/tmp/ipykernel_12/271823389.py"),
                    .function = tables.strings.intern("<module>"),
                    .line = 2};
  const uint32_t node = tables.stacks.push(0, tables.stacks.intern_frame(frame));
  EXPECT_EQ(short_line(tables, node), "<cell 271823389>:2");
  EXPECT_EQ(headline_text(tables, node, ""), "<cell 271823389>:2 <module>");
}

TEST(UserCode, OfAStackInCppAloneTheOperatorIsNamed) {
  Tables tables;
  uint32_t stack = 0;
  std::vector<uint32_t> nodes;
  for (const char* function :
       {"thread_start", "at::_ops::mm::call", "at::native::empty_cuda",
        "torch::CapturedTraceback::gather(bool)", "torch::unwind::unwind()"}) {
    const Frame frame{tables.strings.intern("??"), tables.strings.intern(function), 0};
    stack = tables.stacks.push(stack, tables.stacks.intern_frame(frame));
    nodes.push_back(stack);
  }
  EXPECT_EQ(headline_node(tables, stack), nodes[1]);
  EXPECT_EQ(headline_node(tables, nodes[0]), nodes[0]);
  EXPECT_EQ(group_by_innermost({{stack, 1, 1}}, tables)[0].node, nodes[2]);
}

TEST(UserCode, WithoutAFrameOfTheUsersTheInnermostIsNamed) {
  Tables tables;
  const uint32_t frame = tables.stacks.intern_frame(
      {tables.strings.intern("/l/site-packages/a.py"), tables.strings.intern("f"), 3});
  const uint32_t stack = tables.stacks.push(tables.stacks.push(0, frame), frame);
  EXPECT_EQ(headline_node(tables, stack), stack);
}

TEST(UserCode, StacksThroughOneLineAreAddedUp) {
  MemorySource source = sample_source();
  const std::vector<HolderLine> lines =
      group_by_line({{4, 600, 1}, {3, 500, 2}, {6, 200, 3}, {0, 1, 1}}, source.tables());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].bytes, 700u);
  EXPECT_EQ(lines[0].count, 5u);
  EXPECT_EQ(lines[0].stacks.size(), 2u);
  EXPECT_EQ(lines[1].bytes, 600u);
  EXPECT_EQ(lines[2].node, 0u);
  EXPECT_EQ(group_by_innermost({{3, 500, 2}, {6, 200, 3}}, source.tables()).size(), 2u);
}

}  // namespace
}  // namespace gpumemprof
