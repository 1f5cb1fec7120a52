#include "recording/operation_lines.h"

#include <gtest/gtest.h>

#include "recording/fake_probe.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace for_tests;

const std::string kDocument = R"({"schema":"gpumemprof.operations/1","host":"h","pid":100,)"
                              R"("start_ticks":7,"frames":[["t.py",3,"main"],["t.py",9,"net"]],)"
                              R"("stacks":[[0,1],[0]],"operations":{"d/MatMul":0,"Add":null,)"
                              R"("Sub":1},"left_out":{"operations":0,"graphs":0}})";

TEST(OperationFile, HoldsWhatWasWritten) {
  auto file = parse_operation_file(kDocument);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->host, "h");
  EXPECT_EQ(file->pid, 100u);
  EXPECT_EQ(file->start_ticks, 7u);
  ASSERT_EQ(file->frames.size(), 2u);
  EXPECT_EQ(file->frames[1].file, "t.py");
  EXPECT_EQ(file->frames[1].line, 9u);
  EXPECT_EQ(file->frames[1].function, "net");
  EXPECT_EQ(file->stacks, (std::vector<std::vector<uint32_t>>{{0, 1}, {0}}));
  EXPECT_EQ(file->operations.at("d/MatMul"), 0u);
  EXPECT_EQ(file->operations.at("Add"), UINT32_MAX);
}

TEST(OperationFile, CutAtAnyByteItIsRefusedWithThePlace) {
  for (size_t size = 0; size < kDocument.size(); ++size) {
    auto file = parse_operation_file(std::string_view(kDocument).substr(0, size));
    ASSERT_FALSE(file) << size;
    ASSERT_TRUE(file.error().offset) << size;
    EXPECT_LE(*file.error().offset, size + 1);
  }
}

TEST(OperationFile, AnyFlippedByteIsRefusedOrStaysWithinItsTables) {
  for (size_t at = 0; at < kDocument.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = kDocument;
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      auto file = parse_operation_file(text);
      if (!file) continue;
      for (const auto& stack : file->stacks) {
        for (uint32_t frame : stack) EXPECT_LT(frame, file->frames.size());
      }
      for (const auto& [name, stack] : file->operations) {
        EXPECT_TRUE(stack == UINT32_MAX || stack < file->stacks.size());
      }
    }
  }
}

TEST(OperationFile, VariablesOfAnotherShapeAreRefused) {
  for (const char* bad : {R"("variables":{"a":["v"]},)", R"("variables":{"a":[1,"l"]},)",
                          R"("variables":{"a":"v"},)", R"("xla":{"a":1},)", R"("layers":[],)",
                          R"("layers":{"a":1},)", R"("layers":{"a":["b"]},)"}) {
    std::string text = kDocument;
    text.insert(text.find("\"left_out\""), bad);
    EXPECT_FALSE(parse_operation_file(text)) << bad;
  }
}

const std::string kLayers = R"("layers":{"d":"model/d","d/e":null,"f":"model/f"},)";

TEST(OperationFile, LayersCutOrFlippedAtAnyByteAreRefusedOrAreTexts) {
  std::string whole = kDocument;
  whole.insert(whole.find("\"left_out\""), kLayers);
  ASSERT_EQ(parse_operation_file(whole)->layers.at("d"), "model/d");
  EXPECT_EQ(parse_operation_file(whole)->layers.at("d/e"), "");
  const size_t begin = whole.find("\"layers\""), end = begin + kLayers.size();
  for (size_t at = begin; at < end; ++at) {
    ASSERT_FALSE(parse_operation_file(std::string_view(whole).substr(0, at)));
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      auto file = parse_operation_file(text);
      if (file) {
        EXPECT_LE(file->layers.size(), 3u);
      }
    }
  }
}

TEST(OperationFile, ALayersNameThatIsTooLongIsRefused) {
  std::string text = kDocument;
  text.insert(text.find("\"left_out\""), R"("layers":{"a":")" + std::string(5000, 'x') + "\"},");
  EXPECT_FALSE(parse_operation_file(text));
}

TEST(OperationFile, NestingIsLimited) {
  std::string deep = R"({"schema":)" + std::string(100'000, '[');
  auto file = parse_operation_file(deep);
  ASSERT_FALSE(file);
}

class OperationLinesTest : public ::testing::Test {
 protected:
  /// A thread of an executor: stacks that are nothing but an operation, and one with frames.
  void record(const std::string& operations) {
    FakeProbe probe;
    probe.header().start_ticks = 7;
    probe.state().python_version = python_version_, probe.state().clean_exit = clean_exit_;
    memcpy(probe.header().host, "h", 2);
    auto& a = probe.start_thread(11, "tf_executor");
    for (uint64_t i = 0; i < names_.size(); ++i) {
      probe.alloc(&a, 5000 + i, 0x100 * (i + 1), 64, operation_stack(&probe, &a, names_[i]));
    }
    probe.alloc(&a, 5009, 0x4000, 64, probe.define_stack(&a, {"main", "step"}, 3));
    ASSERT_EQ(probe.save(folder_.file("x.gmp")), 0);
    write_file(folder_.file("operations.100.7.json"), operations);
  }
  uint32_t operation_stack(FakeProbe* probe, FakeProbe::Thread* thread, const std::string& name) {
    auto text = [&](const std::string& value) {
      uint32_t id = thread->next_id++;
      std::string body(4, '\0');
      memcpy(body.data(), &id, 4);
      probe->define(thread, format::kDefString, body + value);
      return id;
    };
    const uint32_t file = text("<tensorflow>"), function = text(name);
    const uint32_t frame = thread->next_id++, stack = thread->next_id++;
    auto bytes = [](std::initializer_list<uint32_t> words) {
      std::string out;
      for (uint32_t word : words) out.append(reinterpret_cast<const char*>(&word), 4);
      return out;
    };
    probe->define(thread, format::kDefFrame, bytes({frame, file, function, 0}));
    probe->define(thread, format::kDefStack, bytes({stack, 0, 1u << 16, frame}));
    return stack;
  }
  /// The stacks of all events, the allocating frame first.
  std::vector<std::vector<std::string>> stacks(Loss* loss = nullptr) {
    std::vector<std::vector<std::string>> out;
    auto source = open_recording({folder_.path()});
    EventBatch batch;
    while (source && *(*source)->next(&batch)) {
      for (uint32_t stack : batch.stack) out.push_back(stack_lines((*source)->tables(), stack));
    }
    if (loss) *loss = (*source)->loss();
    return out;
  }
  TempFolder folder_;
  uint64_t python_version_ = 0, clean_exit_ = 0;
  std::vector<std::string> names_ = {"Call/d/MatMul", "Add", "Elsewhere"};
};

TEST_F(OperationLinesTest, AnOperationAloneGetsTheLinesThatMadeItAndNothingElseChanges) {
  record(kDocument);
  Loss loss;
  const std::vector<std::vector<std::string>> expected = {
      {"<tensorflow> Call/d/MatMul", "<tensorflow> operation made by", "t.py:9 net", "t.py:3 main"},
      {"<tensorflow> Add"},        // made in several places: which one is not known
      {"<tensorflow> Elsewhere"},  // not in the file
      {"step.py:3 step", "main.py:3 main"}};
  EXPECT_EQ(stacks(&loss), expected);
  EXPECT_EQ(loss.reasons.size(), 0u);
}

TEST_F(OperationLinesTest, WhatCouldNotBeAskedForIsSaidWhereItAllocated) {
  std::string text = kDocument;
  text.replace(text.find("\"graphs\":0"), 10, "\"graphs\":5");
  names_ = {"Call/d/MatMul", "Add"};
  record(text);
  Loss loss;
  stacks(&loss);
  EXPECT_EQ(loss.reasons.size(), 0u) << "frameworks make graphs that never run";
  names_ = {"Call/d/MatMul", "Elsewhere", "Elsewhere"};
  record(text);
  stacks(&loss);
  ASSERT_EQ(loss.reasons.size(), 1u);
  EXPECT_EQ(loss.reasons[0].reason,
            "operations.100.7.json: 1 operation has no source lines: their graphs were deleted, or "
            "time ran out");
}

TEST_F(OperationLinesTest, WhatTheProgramsEndCouldNotReadIsSaid) {
  std::string text = kDocument;
  text.insert(text.find("\"left_out\""), R"_("errors":{"a graph (KeyError: x)":2},)_");
  record(text);
  Loss loss;
  stacks(&loss);
  ASSERT_EQ(loss.reasons.size(), 1u);
  EXPECT_EQ(loss.reasons[0].reason,
            "operations.100.7.json: could not read a graph (KeyError: x), 2 times: operations have "
            "no lines or layers");
}

TEST_F(OperationLinesTest, OperationsOfAKilledPythonThatWroteNoFileAreSaid) {
  const auto reasons = [&](uint64_t python, uint64_t clean_exit, const std::string& document) {
    python_version_ = python, clean_exit_ = clean_exit;
    record(document);
    Loss loss;
    stacks(&loss);
    std::vector<std::string> said;
    for (const LossReason& one : loss.reasons) said.push_back(one.reason);
    return said;
  };
  std::string other = kDocument;
  other.replace(other.find("\"pid\":100"), 9, "\"pid\":101");
  const uint64_t python = 3u << 16 | 11u << 8;
  EXPECT_EQ(reasons(python, 0, other),
            std::vector<std::string>{"3 operations of graphs have no source lines: process 100 was "
                                     "killed before it wrote them, or still runs"});
  EXPECT_TRUE(reasons(python, 0, kDocument).empty()) << "it wrote them";
  EXPECT_TRUE(reasons(python, 1, other).empty()) << "its Python may lack the package";
  EXPECT_TRUE(reasons(0, 0, other).empty()) << "no Python has no lines of Python";
  EXPECT_EQ(reasons(python, 0, "{").size(), 1u) << "the file that cannot be read, alone";
}

TEST_F(OperationLinesTest, VariablesAndClustersStandBelowTheirOperation) {
  std::string text = kDocument;
  text.insert(text.find("\"left_out\""),
              R"("variables":{"d/MatMul":["adam/d_k_m","d"],)"
              R"("Add":["loss/total",null]},"xla":{"Elsewhere":"__inference_f_1"},)");
  record(text);
  Loss loss;
  const std::vector<std::vector<std::string>> expected = {
      {"<tensorflow> Call/d/MatMul", "<tensorflow variable> adam/d_k_m", "<tensorflow layer> d",
       "<tensorflow> operation made by", "t.py:9 net", "t.py:3 main"},
      {"<tensorflow> Add", "<tensorflow variable> loss/total"},
      {"<tensorflow> Elsewhere", "<tensorflow XLA cluster> __inference_f_1"},
      {"step.py:3 step", "main.py:3 main"}};
  EXPECT_EQ(stacks(&loss), expected);
  EXPECT_EQ(loss.reasons.size(), 0u);
}

TEST_F(OperationLinesTest, AnOperationsLayerIsThatOfTheInnermostScopeThatItsGraphSays) {
  names_ = {"Call/d/x/MatMul", "gradient_tape/d/x/MatMul/MatMul_1", "d/e/Add", "Call/f/Add",
            "f/unknown/Add"};
  std::string text = kDocument;
  text.insert(
      text.find("\"Sub\":1"),
      R"("d/x/MatMul":0,"gradient_tape/d/x/MatMul/MatMul_1":1,"d/e/Add":1,"Call/f/Add":1,)");
  text.insert(text.find("\"left_out\""), kLayers);
  record(text);
  std::vector<std::string> layers;
  for (const auto& lines : stacks()) {
    layers.push_back(lines.size() > 1 && lines[1].starts_with("<layer>") ? lines[1] : "");
  }
  layers.resize(5);
  EXPECT_EQ(layers, (std::vector<std::string>{
                        "<layer> model/d", "<layer> model/d", "",  // several layers are called so
                        "",    // "Call" is a scope of that graph: "f" is not the outermost one
                        ""}))  // no graph says that it has such an operation
      << "scopes";
}

TEST_F(OperationLinesTest, ScopesThatWereTooManyAreSaid) {
  std::string text = kDocument;
  text.replace(text.find("\"graphs\":0"), 10, "\"graphs\":0,\"scopes\":4");
  record(text);
  Loss loss;
  stacks(&loss);
  ASSERT_EQ(loss.reasons.size(), 1u);
  EXPECT_NE(loss.reasons[0].reason.find("4 graph scopes exceeded the limit"), std::string::npos);
}

TEST_F(OperationLinesTest, TheFileOfAnotherProcessIsNotUsed) {
  std::string other = kDocument;
  other.replace(other.find("\"pid\":100"), 9, "\"pid\":101");
  record(other);
  EXPECT_EQ(stacks()[0], (std::vector<std::string>{"<tensorflow> Call/d/MatMul"}));
}

TEST_F(OperationLinesTest, ADamagedFileIsNamedAndTheRecordingReadAllTheSame) {
  record(kDocument.substr(0, 40));
  Loss loss;
  EXPECT_EQ(stacks(&loss).size(), 4u);
  ASSERT_EQ(loss.reasons.size(), 1u);
  EXPECT_EQ(loss.reasons[0].reason,
            "operations.100.7.json: not a list of operations (at byte 41): operations have no "
            "lines");
}

}  // namespace
}  // namespace gpumemprof
