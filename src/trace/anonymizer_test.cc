#include "trace/anonymizer.h"

#include <gtest/gtest.h>

#include "trace/anonymous_source.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

TEST(Anonymizer, InstalledFilesLoseOnlyTheirFolder) {
  Anonymizer names;
  EXPECT_EQ(names.file("/srv/anna/v/lib/python3.11/site-packages/torch/a.py"),
            "/site-packages/torch/a.py");
  EXPECT_EQ(names.file("/opt/anna/lib/python3.12/json/a.py"), "/lib/python3.12/json/a.py");
  EXPECT_EQ(names.file("/usr/lib/x86_64-linux-gnu/libc.so.6"), "/libc.so.6");
  EXPECT_EQ(names.file("C:\\v\\Lib\\site-packages\\torch\\a.py"), "\\site-packages\\torch\\a.py");
  EXPECT_EQ(names.file("/usr/src/anna/python-3.12.3/Objects/methodobject.c"),
            "/python-3.12.3/Objects/methodobject.c");
  EXPECT_EQ(names.function("cfunction_call", "/b/Python-3.9.1/Objects/methodobject.c"),
            "cfunction_call");
  EXPECT_EQ(names.file("/tmp/torchinductor_anna/l4/cl4x.py"), "/torchinductor_/l4/cl4x.py");
  EXPECT_EQ(names.file("/tmp/__autograph_generated_file1x2.py"),
            "/__autograph_generated_file1x2.py");
  EXPECT_EQ(names.file("<frozen runpy>"), "<frozen runpy>");
  EXPECT_EQ(names.file(""), "");
}

TEST(Anonymizer, OwnNamesAreReplacedAlwaysByTheSame) {
  Anonymizer names;
  EXPECT_EQ(names.file("/srv/anna/train.py"), "/folder1/file1.py");
  EXPECT_EQ(names.file("/srv/anna/secret.plan"), "/folder1/file2");
  EXPECT_EQ(names.file("/srv/anna/train.py"), "/folder1/file1.py");
  EXPECT_EQ(names.file("/opt/train.py"), "/folder2/file1.py");
  EXPECT_EQ(names.file("/srv/lib/python3stuff/secret.py"), "/folder3/file3.py");
  EXPECT_EQ(names.file("<ipython-input-3-anna>"), "file4");
  EXPECT_EQ(names.file("C:\\anna\\libown.so"), "/folder4/file5.so");
  EXPECT_EQ(names.function("Anna.step", "/srv/anna/train.py"), "function1");
  EXPECT_EQ(names.function("Anna.step", "/other.py"), "function1");
  EXPECT_EQ(names.function("<module>", "/srv/anna/train.py"), "<module>");
  EXPECT_EQ(names.function("anna", "<string>"), "function2");
  EXPECT_EQ(names.function("Module._call_impl", "/v/site-packages/torch/nn/m.py"),
            "Module._call_impl");
  EXPECT_EQ(names.file("<layer>"), "<layer>");
  EXPECT_EQ(names.function("annas_model/dense", "<layer>"), "function3");
  EXPECT_EQ(names.file("<driver>"), "<driver>");
  EXPECT_EQ(names.function("libcublas.so.12", "<driver>"), "libcublas.so.12");
  EXPECT_EQ(names.function("libannas_model.so", "<driver>"), "library4");
  EXPECT_EQ(names.file("/srv/anna/python-3.plan/secret.c"), "/folder5/file6.c")
      << "native code is told by its ending";
  EXPECT_EQ(names.host("anna-pc"), "host1");
  EXPECT_EQ(names.command("python /srv/anna/train.py"), "command1");
}

TEST(Anonymizer, OfNativeNamesOnlyThoseOfPublicCodeStay) {
  EXPECT_TRUE(is_public_native_name("at::native::add(at::Tensor const&, at::Tensor const&)"));
  EXPECT_TRUE(is_public_native_name("void c10::function_ref<void (int)>::callback_fn<3>"));
  EXPECT_TRUE(is_public_native_name("_PyEval_EvalFrameDefault"));
  EXPECT_FALSE(is_public_native_name("torch::autograd::CppNode<AnnasSecret>::apply"));
  EXPECT_FALSE(is_public_native_name("anna::kernel<at::Half>"));
  EXPECT_FALSE(is_public_native_name("at::x<\xc3\xa4nna>"));
  EXPECT_FALSE(is_public_native_name(""));
  Anonymizer names;
  EXPECT_EQ(names.function("at::empty_cpu", "??"), "at::empty_cpu");
  EXPECT_EQ(names.function("anna_kernel", "??"), "function1");
  EXPECT_EQ(names.function("at::empty_cpu", "EmptyTensor.cpp"), "at::empty_cpu");
  EXPECT_EQ(names.function("anna_kernel", "anna.cu"), "function1");
}

/// Two packages in two environments, and a file of somebody's own.
MemorySource source_with_names() {
  EventBatch events;
  append(&events, {1, Action::kAlloc, 0x10, 5, 1, 0, 0});
  append(&events, {2, Action::kAlloc, 0x20, 7, 2, 0, 0});
  append(&events, {3, Action::kAlloc, 0x30, 9, 3, 0, 0});
  append(&events, {4, Action::kAlloc, 0x40, 11, 99, 0, 0});  // no such stack
  MemorySource source(std::move(events), 2);
  Tables& tables = source.mutable_tables();
  uint32_t own = 0;
  for (const char* file :
       {"/v1/site-packages/torch/a.py", "/v2/site-packages/torch/a.py", "/srv/anna/train.py"}) {
    own =
        tables.stacks.push(0, tables.stacks.intern_frame({tables.strings.intern(file),
                                                          tables.strings.intern("anna_step"), 3}));
  }
  EXPECT_EQ(own, 3u);
  tables.devices = {{.process = 0}};
  tables.processes = {{.pid = 4,
                       .host = "anna-pc",
                       .command = "python anna.py",
                       .stacks = "none: /srv/anna/lib.so"}};
  tables.threads = {{.process = 0, .tid = 4, .name = "anna"}};
  source.mutable_info().path = "/srv/anna/run";
  source.mutable_loss().add(3, 0, "process 9 (anna.py) was not recorded");
  return source;
}

TEST(AnonymousSource, SameEventsUnderOtherNames) {
  auto names = std::make_shared<Anonymizer>();
  AnonymousSource source(std::make_unique<MemorySource>(source_with_names()), names);
  EventBatch batch;
  std::vector<std::string> first_lines;
  std::vector<uint64_t> sizes;
  while (*source.next(&batch)) {
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto lines = stack_lines(source.tables(), batch.stack[i]);
      first_lines.push_back(lines.empty() ? "" : lines[0]);
      sizes.push_back(batch.size_bytes[i]);
    }
  }
  EXPECT_EQ(sizes, (std::vector<uint64_t>{5, 7, 9, 11}));
  EXPECT_EQ(first_lines, (std::vector<std::string>{"/site-packages/torch/a.py:3 anna_step",
                                                   "/site-packages/torch/a.py:3 anna_step",
                                                   "/folder1/file1.py:3 function1", ""}));
  const Process& process = source.tables().processes[0];
  EXPECT_EQ(process.pid, 4u);
  EXPECT_EQ(process.host + process.command + process.stacks, "host1command1none: reason withheld");
  EXPECT_EQ(source.tables().threads[0].name, "thread1");
  EXPECT_EQ(source.info().path, "input1");
  EXPECT_EQ(source.loss().events, 3u);
  EXPECT_EQ(source.loss().reasons[0].reason, "reason withheld: it may contain names");
}

TEST(AnonymousSource, AStateFromBeforeTheFirstEventKeepsItsBytes) {
  MemorySource plain = source_with_names();
  EventBatch before;
  append(&before, {1, Action::kAlloc, 0x90, 100, 1, 0, 0});
  append(&before, {1, Action::kAlloc, 0xa0, 30, 2, 0, 0});
  LiveState state;
  state.apply(before);
  plain.set_state_before(state);
  AnonymousSource source(std::make_unique<MemorySource>(std::move(plain)),
                         std::make_shared<Anonymizer>());
  const LiveState* kept = source.state_before_first_event();
  ASSERT_NE(kept, nullptr);
  const std::vector<Holder> holders = kept->holders_now(0);
  ASSERT_EQ(holders.size(), 1u) << "two environments' stacks are one here";
  EXPECT_EQ(holders[0].bytes, 130u);
  EXPECT_EQ(kept->event_count(), 2u);
}

}  // namespace
}  // namespace gpumemprof
