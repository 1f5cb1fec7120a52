// Files that no PyTorch writes: each ends in one line with the place, in bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sanitizers_for_tests.h"
#include "readers/memory_file.h"
#include "readers/pickle/pickle_for_tests.h"
#include "readers/torch_snapshot/read.h"

namespace gpumemprof {
namespace {

using namespace for_tests;

struct Refusal {
  std::string message;
  uint64_t offset = UINT64_MAX;
};

/// The error of reading `bytes`; an empty message where there is none.
Refusal refusal(const std::string& bytes, uint64_t memory_bytes = 0) {
  MemoryFile file(bytes);
  auto snapshot = read_torch_snapshot(file, {.limits = {.memory_bytes = memory_bytes}});
  if (snapshot) return {};
  EXPECT_EQ(snapshot.error().code, ErrorCode::kBadInput) << snapshot.error().message;
  EXPECT_EQ(snapshot.error().message.find('\n'), std::string::npos);
  EXPECT_TRUE(snapshot.error().offset) << snapshot.error().message;
  EXPECT_LE(snapshot.error().offset.value_or(UINT64_MAX), bytes.size());
  return {snapshot.error().message, snapshot.error().offset.value_or(UINT64_MAX)};
}

void expect_refused(const std::string& bytes, uint64_t offset, const std::string& word) {
  const Refusal got = refusal(bytes);
  EXPECT_NE(got.message.find(word), std::string::npos) << got.message;
  EXPECT_EQ(got.offset, offset) << got.message;
}

std::string repeated(const std::string& bytes, size_t times) {
  std::string out;
  out.reserve(bytes.size() * times);
  for (size_t i = 0; i < times; ++i) out += bytes;
  return out;
}

std::filesystem::path corpus() {
  return std::filesystem::path(GPUMEMPROF_SOURCE_DIR) / "fuzz" / "corpus" / "fuzz_torch_snapshot";
}

std::string corpus_file(const std::string& name) {
  std::ifstream file(corpus() / name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

TEST(HostileSnapshot, OpcodesThatCouldRunCodeAreNamedAndRefused) {
  expect_refused(
      "\x80\x04"
      "cos\nsystem\n.",
      2, "GLOBAL");
  expect_refused("\x80\x02N)R.", 4, "REDUCE");
  expect_refused(std::string("\x80\x04\x8c\x02os\x8c\x06system\x93", 15), 14, "STACK_GLOBAL");
  expect_refused("\x80\x04}}b.", 4, "BUILD");
  expect_refused("\x80\x04(ios\nsystem\n.", 3, "INST");
  expect_refused("\x80\x04Pid\n.", 2, "PERSID");
}

TEST(HostileSnapshot, EveryOpcodeOutsideOfTheListIsRefusedWhereItStands) {
  const std::string known(
      "(.GJKMNXaehjld]})qrsut\x80\x85\x86\x87\x88\x89\x8a\x8b"
      "BC\x8c\x8d\x8e\x8f"
      "\x90\x91\x94\x95\x96");
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (known.find(static_cast<char>(opcode)) != known.npos) continue;
    const Refusal got = refusal("\x80\x04]" + std::string(1, static_cast<char>(opcode)) + "..");
    EXPECT_EQ(got.offset, 3u) << opcode << ": " << got.message;
    EXPECT_NE(got.message.find("opcode"), std::string::npos) << opcode << ": " << got.message;
  }
}

TEST(HostileSnapshot, NothingOrSomethingElseIsNoSnapshot) {
  expect_refused("", 0, "empty");
  expect_refused(std::string(1, '\0'), 1, "not JSON");
  expect_refused("\x80", 1, "ends");
  expect_refused(pickle(dict({text("weights"), "K\x01"})), 17, "not a PyTorch memory snapshot");
  expect_refused(pickle("K\x01"), 5, "not a PyTorch memory snapshot");
  expect_refused("{\"events\": [1, 2]}", 18, "not a PyTorch memory snapshot");
  expect_refused("[1, 2, 3]", 9, "not a PyTorch memory snapshot");
  expect_refused("\x80\x06]..", 2 - 2, "protocol 6");
}

TEST(HostileSnapshot, AListThatHoldsItselfIsRefused) {
  expect_refused("\x80\x04]\x94h" + std::string(1, '\0') + "a.", 6, "contains itself");
  expect_refused("\x80\x04]\x94(h" + std::string(1, '\0') + "e.", 7, "contains itself");
  expect_refused("\x80\x04}\x94" + text("segments") + "h" + std::string(1, '\0') + "s.", 16,
                 "contains itself");
  // Through another one.
  expect_refused("\x80\x04]\x94]\x94h" + std::string(1, '\0') + "aa.", 9, "contains itself");
}

TEST(HostileSnapshot, ReferencesToWhatIsNotThereAreRefused) {
  expect_refused("\x80\x04h\x05.", 2, "entry 5");
  expect_refused("\x80\x04j\xff\xff\xff\xff.", 2, "entry 4294967295");
  expect_refused("\x80\x04]r\xff\xff\xff\xff.", 3, "one by one");
  expect_refused("\x80\x04]q\x01.", 3, "one by one");
  expect_refused("\x80\x04]\x94\x94.", 4, "twice");
}

TEST(HostileSnapshot, ContainersThatDoNotAddUpAreRefused) {
  expect_refused(
      "\x80\x04"
      "e.",
      2, "without a beginning");
  expect_refused(
      "\x80\x04"
      "a.",
      2, "without a list");
  expect_refused("\x80\x04](.", 4, "incomplete containers");
  expect_refused("\x80\x04]].", 4, "incomplete containers");
  expect_refused("\x80\x04}(Nu.", 5, "without a value");
  expect_refused("\x80\x04\x86.", 2, "tuple");
  expect_refused("\x80\x04(Ne.", 4, "without a list");
}

TEST(HostileSnapshot, LengthsBeyondTheFileAreRefusedBeforeAnythingIsReserved) {
  const std::string five_gb = little_endian(5'000'000'000, 8);
  expect_refused("\x80\x04\x8d" + five_gb + "abc.", 2, "5000000000");
  expect_refused("\x80\x04\x8e" + five_gb + ".", 2, "5000000000");
  expect_refused("\x80\x04\x95" + five_gb + "].", 2, "5000000000");
  expect_refused(
      "\x80\x04X\xff\xff\xff\xff"
      "abc.",
      2, "4294967295");
  expect_refused("\x80\x04\x8b\xff\xff\xff\xff.", 2, "4294967295");
  expect_refused("\x80\x04\x8d" + little_endian(UINT64_MAX, 8) + ".", 2, "beyond the end");
}

TEST(HostileSnapshot, AnIntegerOfNineBytesIsRefusedWhereANumberIsNeeded) {
  const std::string nine = "\x8a\x09" + std::string(8, '\xff') + '\x01';  // 2^65 - 1
  for (const char* field : {"addr", "size", "stream", "time_us"}) {
    const Refusal got = refusal(snapshot_of(list({event("alloc", 1, 2, text(field) + nine)})));
    EXPECT_EQ(got.message.find("an event's '" + std::string(field) +
                               "' is a number that is out of range"),
              0u)
        << got.message;
  }
  EXPECT_EQ(refusal(snapshot_of(list({event("alloc", 1, 2, text("anything") + nine)}))).message,
            "");
}

TEST(HostileSnapshot, AWrongTypeInAnyFieldNamesTheField) {
  const std::string fields[] = {"action", "addr", "size", "stream", "time_us", "frames", "pool_id"};
  for (const std::string& field : fields) {
    for (const std::string& value : {std::string("G\x3f\xf0\0\0\0\0\0\0", 9), std::string("}"),
                                     "\x8a\x09" + std::string(9, '\x7f'), list({"N"})}) {
      if (field == "frames" && value == "}") continue;
      const Refusal got = refusal(snapshot_of(list({event("alloc", 1, 2, text(field) + value)})));
      EXPECT_NE(got.message.find('\'' + field + '\''), std::string::npos)
          << field << ": " << got.message;
    }
  }
  EXPECT_NE(refusal(snapshot_of(list({event("alloc", 1, -2)}))).message.find("out of range"),
            std::string::npos);
  EXPECT_NE(refusal(snapshot_of(list({event("alloc", 1, 2), "N"}))).message.find("different types"),
            std::string::npos);
  EXPECT_NE(refusal(pickle(dict({text("segments"), "K\x05"}))).message.find("'segments'"),
            std::string::npos);
  EXPECT_NE(refusal(pickle(dict({text("device_traces"), list({list({"N"})})})))
                .message.find("device_traces"),
            std::string::npos);
}

TEST(HostileSnapshot, EveryFieldOfARealSegmentWithAWrongTypeIsRefused) {
  const std::string json = corpus_file("torch_2_10.json");
  for (const char* field : {"address",
                            "total_size",
                            "allocated_size",
                            "active_size",
                            "requested_size",
                            "stream",
                            "segment_type",
                            "segment_pool_id",
                            "is_expandable",
                            "device",
                            "state",
                            "size",
                            "blocks",
                            "filename",
                            "name",
                            "line",
                            "stage",
                            "time_us",
                            "PYTORCH_CUDA_ALLOC_CONF",
                            "max_split_size",
                            "garbage_collection_threshold",
                            "expandable_segments",
                            "roundup_power2_divisions"}) {
    const std::string key = '"' + std::string(field) + "\": ";
    const size_t at = json.find(key);
    ASSERT_NE(at, json.npos) << field;
    const size_t value = at + key.size();
    size_t end = value;  // behind the value: a comma or bracket outside of its own brackets
    for (int depth = 0; depth > 0 || (json[end] != ',' && json[end] != '}'); ++end) {
      depth += (json[end] == '[' || json[end] == '{') - (json[end] == ']' || json[end] == '}');
    }
    const Refusal got = refusal(json.substr(0, value) + "[null]" + json.substr(end));
    EXPECT_NE(got.message.find(field), std::string::npos) << field << ": " << got.message;
  }
}

TEST(HostileSnapshot, TruncatedAnywhereIsAnErrorAtMostAtTheEnd) {
  for (const char* name : {"torch_2_10.pickle", "torch_2_14.pickle", "protocol_2.pickle",
                           "torch_2_0.pickle", "odd.pickle", "torch_2_10.json"}) {
    const std::string whole = corpus_file(name);
    ASSERT_EQ(refusal(whole).message, "");
    for (size_t size = 0; size < whole.size(); ++size) {
      ASSERT_NE(refusal(whole.substr(0, size)).message, "") << name << " cut at " << size;
    }
  }
}

TEST(HostileSnapshot, AFileThatShrinksWhileItIsReadIsAnError) {
  MemoryFile file(corpus_file("protocol_2.pickle").substr(0, 500));
  file.claim(1 << 20);
  auto snapshot = read_torch_snapshot(file);
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().offset, 500u);
}

TEST(HostileSnapshot, AnyFlippedByteIsReadOrRefused) {
  for (const char* name : {"torch_2_10.pickle", "torch_2_14.pickle", "torch_2_0.pickle",
                           "expandable_oom.pickle", "torch_2_10.json"}) {
    const std::string whole = corpus_file(name);
    for (size_t at = 0; at < whole.size(); ++at) {
      for (unsigned char mask : {0x01, 0x10, 0x80, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ mask);
        MemoryFile file(bytes);
        auto snapshot = read_torch_snapshot(file);
        if (!snapshot) {
          ASSERT_LE(snapshot.error().offset.value_or(UINT64_MAX), bytes.size()) << name << at;
          continue;
        }
        size_t events = 0;  // a changed byte adds none
        for (const AllocatorTrace& trace : snapshot->traces) events += trace.events.size();
        ASSERT_LE(events, 9u) << name << at;
      }
    }
  }
}

TEST(HostileSnapshot, DeepNestingIsRefused) {
  expect_refused("\x80\x04" + repeated("](", 5000), 2 + 2 * 1000 + 1, "levels deep");
  expect_refused(repeated("[", 5000), 1001, "levels deep");
  EXPECT_NE(refusal("{\"segments\":" + repeated("{\"a\":", 5000)).message.find("levels deep"),
            std::string::npos);
}

TEST(HostileSnapshot, ValuesWithoutAContainerAreBounded) {
  expect_refused("\x80\x04" + repeated("N", 2 << 20), 2 + (1 << 20), "too many values");
  EXPECT_NE(refusal("{\"a\": [" + repeated("{\"b\":1},", 100) + "\"" + std::string(5 << 20, 'x'))
                .message.find("too long"),
            std::string::npos);
}

/// What of memory the address space of a child may grow by, in bytes, while `bytes` is read there
/// with `limit`; the child's exit says how reading ended: 0 refused, 1 read, else it died.
int read_in_child(const std::string& bytes, uint64_t limit, uint64_t more_address_space) {
  const pid_t child = fork();
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * 4096 + more_address_space;
    const rlimit space{most, most};
    setrlimit(RLIMIT_AS, &space);
    MemoryFile file(bytes);
    auto snapshot = read_torch_snapshot(file, {.limits = {.memory_bytes = limit}});
    _exit(snapshot ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

constexpr char kReserves[] = "sanitizers reserve terabytes of address space: not under RLIMIT_AS";

TEST(HostileSnapshot, BombsEndAtTheLimitOfMemory) {
  NOT_UNDER_SANITIZERS(kReserves);
  constexpr uint64_t kLimit = 32 << 20;
  std::string distinct_stacks = "\x80\x04]\x94(";  // every list a stack of its own
  std::string frames;
  for (int i = 0; i < 200; ++i) {
    frames += dict({text("filename"), text("f"), text("name"), text(std::to_string(i))}) + '\x94';
  }
  for (uint32_t i = 0; i < 300'000; ++i) {
    distinct_stacks += "](";
    for (int k = 0; k < 8; ++k) {
      distinct_stacks += 'h';
      distinct_stacks += static_cast<char>(1 + (i * 2654435761u >> (3 * k)) % 200);
    }
    distinct_stacks += 'e';
    if (i % 1000 == 999) distinct_stacks += "e(";
  }
  std::string texts = "\x80\x04](";
  for (int i = 0; i < 600'000; ++i) texts += text(std::to_string(i));
  const struct {
    const char* name;
    std::string bytes;
  } bombs[] = {
      {"memo entries", "\x80\x04]" + repeated(")\x94"
                                              "a",
                                              12 << 20)},
      {"stacks", "\x80\x04](" + frames + "e" + distinct_stacks.substr(4)},
      {"texts", texts},
      {"traces", "\x80\x04](" + repeated(list({event("alloc", 1, 2)}), 1000)},
      {"events", "\x80\x04](" + repeated(event("alloc", 1, 2), 100'000)},
      {"blocks",
       "\x80\x04](" +
           repeated(list({dict({text("size"), "K\x01", text("state"), text("inactive")})}),
                    400'000)},
      {"wrong events", "\x80\x04](" + repeated(list({event("alloc", -1, -2)}), 200'000)},
  };
  for (const auto& bomb : bombs) {
    EXPECT_EQ(read_in_child(bomb.bytes, kLimit, 3 * kLimit), 0) << bomb.name;
  }
}

TEST(HostileSnapshot, ALimitOfMemoryIsSaid) {
  std::string texts = "\x80\x04](";
  for (int i = 0; i < 100'000; ++i) texts += text(std::to_string(i));
  EXPECT_NE(refusal(texts + "e.", 1 << 20).message.find("more than 1 MiB of memory"),
            std::string::npos);
}

}  // namespace
}  // namespace gpumemprof
