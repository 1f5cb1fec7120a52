// Dictionaries that are recognised by the bytes of their keys say the same as those that are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "readers/memory_file.h"
#include "readers/pickle/pickle_for_tests.h"
#include "readers/torch_snapshot/read.h"

namespace gpumemprof {
namespace {

using for_tests::little_endian;

/// Writes the same values in one of two ways: as Python's pickler does, numbered and with
/// references to what was written before, or everything anew, which nothing recognises.
class Writer {
 public:
  explicit Writer(bool numbered) : numbered_(numbered) {}

  std::string remember() {
    ++entries_;
    return numbered_ ? "\x94" : "";
  }
  std::string text(const std::string& text) {
    if (const auto known = texts_.find(text); numbered_ && known != texts_.end())
      return reference(known->second);
    texts_[text] = entries_;
    return for_tests::text(text) + remember();
  }
  std::string number(uint64_t value) {
    if (value < 256) return 'K' + little_endian(value, 1);
    if (value < 65'536) return 'M' + little_endian(value, 2);
    if (value < 1u << 31) return 'J' + little_endian(value, 4);
    return for_tests::number(static_cast<int64_t>(value));
  }
  std::string frame(unsigned line) {
    if (const auto known = frames_.find(line); numbered_ && known != frames_.end())
      return reference(known->second);
    frames_[line] = entries_;
    std::string out = "}" + remember() + "(";
    for (const char* word : {"filename", "a.py", "name", "f", "line"}) out += text(word);
    return out + number(line) + 'u';
  }
  std::string frames(std::initializer_list<unsigned> lines) {
    std::string out = "]" + remember() + "(";
    for (unsigned line : lines) out += frame(line);
    return out + 'e';
  }
  std::string begin_dict() { return "}" + remember() + "("; }

 private:
  std::string reference(uint32_t entry) {
    return entry < 256 ? 'h' + little_endian(entry, 1) : 'j' + little_endian(entry, 4);
  }
  bool numbered_;
  uint32_t entries_ = 0;
  std::map<std::string, uint32_t> texts_;
  std::map<unsigned, uint32_t> frames_;
};

/// Segments whose blocks have keys in three orders, some with values that no loop of ours takes.
std::string segments(Writer& writer, std::mt19937& random) {
  const std::vector<std::vector<std::string>> orders = {
      {"address", "size", "requested_size", "state", "frames"},
      {"state", "frames", "size", "address"},
      {"size", "state", "history", "address"}};
  const char* states[] = {"active_allocated", "active_pending_free", "inactive"};
  std::string out;
  for (uint64_t s = 0; s < 200; ++s) {
    out += writer.begin_dict();
    const uint64_t address = 0x7e0000000000 + (s << 24);
    out += writer.text("address") + writer.number(address);
    out += writer.text("total_size") + writer.number(1 << 20);
    out += writer.text("blocks") + ']';
    out += writer.remember() + '(';
    for (uint64_t b = 0; b < 8; ++b) {
      const auto& keys = orders[random() % 5 < 3 ? 0 : random() % 3];
      out += writer.begin_dict();
      for (const std::string& key : keys) {
        out += writer.text(key);
        if (key == "state") {
          out += writer.text(states[random() % 3]);
        } else if (key == "frames") {
          const unsigned line = random() % 400;
          out += writer.frames({line, line + 1, 9});
        } else if (key == "history") {
          out += ']' + writer.remember();
        } else {
          out += writer.number(key == "address" ? address + (b << 17) : random() % 100'000);
        }
      }
      out += 'u';
    }
    out += "eu";
  }
  return out;
}

/// Events with keys in three orders, some with values that no loop of ours takes.
std::string snapshot(bool numbered) {
  Writer writer(numbered);
  std::mt19937 random(1);
  std::string out = "\x80\x04";
  out += writer.begin_dict();
  out += writer.text("segments") + ']';
  out += writer.remember() + '(';
  out += segments(writer, random) + 'e';
  out += writer.text("device_traces") + ']';
  out += writer.remember();
  out += "(]" + writer.remember() + '(';
  const std::vector<std::vector<std::string>> orders = {
      {"action", "addr", "size", "stream", "time_us", "compile_context", "frames"},
      {"size", "frames", "addr", "time_us", "action"},
      {"action", "device_free", "size", "other", "frames"}};
  for (int i = 0; i < 4000; ++i) {
    const auto& keys = orders[random() % 5 < 3 ? 0 : random() % 3];
    out += writer.begin_dict();
    for (const std::string& key : keys) {
      out += writer.text(key);
      if (key == "action") {
        const char* actions[] = {"alloc", "free_requested", "free_completed", "oom", "annotate"};
        out += writer.text(actions[random() % 5]);
      } else if (key == "addr" || key == "device_free") {
        out += writer.number(random() % 4 == 0 ? random() % 100'000 : 0x7f0000000000 + random());
      } else if (key == "frames") {
        const unsigned line = random() % 6;
        out += writer.frames({line, line + 1, 9});
      } else if (key == "other") {  // a pair, a dictionary, or a text
        const unsigned kind = random() % 3;
        out += kind == 0   ? "K\1K\2\x86" + writer.remember()
               : kind == 1 ? writer.begin_dict()
                           : writer.text("x" + std::to_string(random() % 50));
        if (kind == 1) out += writer.text("size") + "K\1u";
      } else if (key == "compile_context") {
        out += for_tests::text("N/A") + writer.remember();
      } else {
        out += writer.number(random() >> random() % 32);
      }
    }
    out += 'u';
  }
  return out + "eeu.";
}

AllocatorSnapshot read_written(const std::string& bytes) {
  MemoryFile file(bytes);
  auto snapshot = read_torch_snapshot(file);
  EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().message);
  return snapshot ? std::move(*snapshot) : AllocatorSnapshot{};
}

TEST(TorchSnapshotRecords, KeysInAnyOrderBelongToTheirOwnEventOrBlock) {
  const AllocatorSnapshot numbered = read_written(snapshot(true)),
                          anew = read_written(snapshot(false));
  ASSERT_EQ(numbered.traces.size(), 1u);
  ASSERT_EQ(anew.traces.size(), 1u);
  const AllocatorEvents& a = numbered.traces[0].events;
  const AllocatorEvents& b = anew.traces[0].events;
  ASSERT_EQ(a.size(), b.size());
  ASSERT_GT(a.size(), 3000u);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].action, b[i].action) << i;
    EXPECT_EQ(a[i].address, b[i].address) << i;
    EXPECT_EQ(a[i].size_bytes, b[i].size_bytes) << i;
    EXPECT_EQ(a[i].time_us, b[i].time_us) << i;
    EXPECT_EQ(numbered.traces[0].streams[a[i].stream], anew.traces[0].streams[b[i].stream]) << i;
    EXPECT_EQ(stack_lines(numbered.tables, a[i].stack), stack_lines(anew.tables, b[i].stack)) << i;
  }
  ASSERT_EQ(anew.traces[0].segments.size(), 200u);
  for (size_t s = 0; s < 200; ++s) {
    const std::vector<AllocatorBlock>& of_a = numbered.traces[0].segments[s].blocks;
    const std::vector<AllocatorBlock>& of_b = anew.traces[0].segments[s].blocks;
    ASSERT_EQ(of_a.size(), 8u);
    ASSERT_EQ(of_b.size(), 8u);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(of_a[i].address, of_b[i].address) << s << ' ' << i;
      EXPECT_EQ(of_a[i].size_bytes, of_b[i].size_bytes) << s << ' ' << i;
      EXPECT_EQ(of_a[i].requested_bytes, of_b[i].requested_bytes) << s << ' ' << i;
      EXPECT_EQ(of_a[i].state, of_b[i].state) << s << ' ' << i;
      EXPECT_EQ(stack_lines(numbered.tables, of_a[i].stack),
                stack_lines(anew.tables, of_b[i].stack))
          << s << ' ' << i;
    }
  }
  ASSERT_EQ(numbered.loss.reasons.size(), anew.loss.reasons.size());
  for (size_t i = 0; i < anew.loss.reasons.size(); ++i) {
    EXPECT_EQ(numbered.loss.reasons[i].events, anew.loss.reasons[i].events);
    EXPECT_EQ(numbered.loss.reasons[i].reason, anew.loss.reasons[i].reason);
  }
}

TEST(TorchSnapshotRecords, CutAnywhereBothAreErrorsAtTheirEnd) {
  const std::string whole = snapshot(true).substr(0, 3000);
  for (size_t size = 2; size < whole.size(); ++size) {
    MemoryFile file(whole.substr(0, size));
    const auto snapshot = read_torch_snapshot(file);
    ASSERT_FALSE(snapshot) << size;
    ASSERT_EQ(snapshot.error().offset, size) << snapshot.error().message;
  }
}

}  // namespace
}  // namespace gpumemprof
