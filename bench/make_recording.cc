// Writes an unsealed recording of any length in the real format, for timing `seal` and `analyze`:
//   make_recording FOLDER --events N --live N [--sizes classes|random] [--stacks N] [--frames N]
//                  [--modules N] [--processes N]
//
// One thread fills memory with `live` blocks; from then on it frees a block drawn by chance and
// allocates another at its address, as a malloc would reuse it. 600 stacks of 20 frames, as in a
// training loop, unless told otherwise. With --modules the innermost frames are native ones, of so
// many libraries; the events are shared out to --processes, a file each.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "format/checksum.h"
#include "format/format.h"

namespace {

using namespace gpumemprof::format;

constexpr uint32_t kStream = 1;
constexpr uint32_t kTid = 1000;
constexpr uint32_t kOwnFrames = 2;  // of a stack; it shares the others with all
constexpr uint64_t kBeginNs = 1'000'000'000'000;

struct Options {
  std::string folder;
  uint64_t events = 10'000'000;
  uint64_t live = 10'000;
  bool random_sizes = false;
  uint32_t stacks = 600;
  uint32_t frames = 20;
  uint64_t modules = 0;
  uint32_t processes = 1;
};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "make_recording: %s\n", why.c_str());
  std::exit(1);
}

class Random {  // splitmix64: the same file on every machine
 public:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return next() % n; }

 private:
  uint64_t state_ = 42;
};

class File {
 public:
  File(const std::string& folder, uint32_t number) : number_(number) {
    const std::string path = folder + "/bench.4194303." + std::to_string(1 + number) + ".gmp";
    file_ = std::fopen(path.c_str(), "wbx");
    if (!file_) stop("cannot create " + path);
    write_at_end(std::vector<char>(kPage));  // becomes the header in finish()
  }
  void chunk(ChunkHeader header, const void* payload) {
    header.magic = kChunkMagic;
    header.recording_id = kRecordingId + number_;
    header.stream = kStream;
    header.crc32c = chunk_crc(header, payload);
    std::vector<char> bytes(round_to_page(sizeof(header) + header.length));
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), payload, header.length);
    write_at_end(bytes);
  }
  void finish() {
    std::vector<char> page(kPage);
    FileHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof(header.magic));
    header.major = kMajor, header.minor = kMinor, header.header_bytes = kPage;
    header.recording_id = kRecordingId + number_;
    header.pid = 4'194'303, header.parent_pid = 1, header.start_ticks = 1 + number_;
    header.monotonic_ns = kBeginNs, header.realtime_ns = kBeginNs;
    header.stack_mode = kStacksPython;
    std::strcpy(header.host, "bench");
    std::strcpy(header.command, "make_recording");
    header.crc32c = header_crc(header);
    FileState state{};
    state.next_offset = size_, state.next_stream = kStream, state.clean_exit = 1;
    state.python_state = kPythonOk, state.python_version = 3 << 16 | 11 << 8;
    std::memcpy(page.data(), &header, sizeof(header));
    std::memcpy(page.data() + kStateOffset, &state, sizeof(state));
    if (std::fseek(file_, 0, SEEK_SET) || std::fwrite(page.data(), 1, kPage, file_) != kPage ||
        std::fclose(file_)) {
      stop("cannot write");
    }
  }

 private:
  static constexpr uint64_t kRecordingId = 0x62656e6368;
  void write_at_end(const std::vector<char>& bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) stop("cannot write");
    size_ += bytes.size();
  }
  uint32_t number_;
  std::FILE* file_;
  uint64_t size_ = 0;
};

/// Gathers definitions and writes them in chunks of the probe's size.
class Definitions {
 public:
  explicit Definitions(File* file) : file_(file) {}
  ~Definitions() { flush(); }
  void add(DefinitionType type, const std::vector<uint32_t>& numbers,
           const std::string& text = "") {
    std::string body(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
    add_body(type, body + text);
  }
  void add_module(uint64_t start, uint64_t end, const std::string& path) {
    const uint64_t numbers[] = {start, end, start};
    add_body(kDefModule, std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)) + path);
  }
  void add_native_frame(uint32_t id, uint64_t pc) {
    add(kDefNativeFrame, {id, static_cast<uint32_t>(pc), static_cast<uint32_t>(pc >> 32)});
  }
  void add_stack(uint32_t id, uint32_t base, uint16_t keep, const std::vector<uint32_t>& frames) {
    const auto n = static_cast<uint16_t>(frames.size());
    std::string body(12, '\0');
    std::memcpy(body.data(), &id, 4), std::memcpy(body.data() + 4, &base, 4);
    std::memcpy(body.data() + 8, &keep, 2), std::memcpy(body.data() + 10, &n, 2);
    body.append(reinterpret_cast<const char*>(frames.data()), frames.size() * 4);
    add_body(kDefStack, body);
  }

 private:
  void add_body(DefinitionType type, const std::string& body) {
    DefinitionHeader header{static_cast<uint8_t>(type), 0, static_cast<uint16_t>(body.size())};
    if (bytes_.size() + sizeof(header) + body.size() > kStageDefinitionBytes) flush();
    uint8_t parity = salt(kStream, sequence_);
    const auto* p = reinterpret_cast<const uint8_t*>(&header);
    for (size_t i = 0; i < sizeof(header); ++i) parity ^= p[i];
    for (char c : body) parity ^= static_cast<uint8_t>(c);
    header.parity = parity;
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes_ += body;
  }
  void flush() {
    if (bytes_.empty()) return;
    ChunkHeader header{};
    header.type = kRawDefinitions;
    header.length = static_cast<uint32_t>(bytes_.size());
    header.sequence = sequence_++;
    file_->chunk(header, bytes_.data());
    bytes_.clear();
  }
  File* file_;
  std::string bytes_;
  uint32_t sequence_ = 0;
};

class Events {
 public:
  explicit Events(File* file) : file_(file) { half_.reserve(kStageEvents); }
  ~Events() { flush(); }
  void add(RawAction action, uint64_t address, uint64_t size, uint32_t stack) {
    time_ns_ += 120 + random_.below(100);
    const uint8_t event_salt = salt(kStream, sequence_);
    half_.push_back(pack(time_ns_, address, kClassCpu, size, action, stack, event_salt));
    if (half_.size() == kStageEvents) flush();
  }

 private:
  void flush() {
    if (half_.empty()) return;
    ChunkHeader header{};
    header.type = kRawEvents;
    header.length = static_cast<uint32_t>(half_.size() * sizeof(RawEvent));
    header.sequence = sequence_++;
    header.count = static_cast<uint32_t>(half_.size());
    header.first_ordinal = ordinal_;
    header.time_first_ns = time_of(half_.front()), header.time_last_ns = time_of(half_.back());
    file_->chunk(header, half_.data());
    ordinal_ += half_.size();
    half_.clear();
  }
  File* file_;
  std::vector<RawEvent> half_;
  Random random_;
  uint64_t time_ns_ = kBeginNs;
  uint64_t ordinal_ = 0;
  uint32_t sequence_ = 0;
};

void define_stacks(File* file, const Options& options) {
  constexpr uint64_t kFirstModule = 0x7e00'0000'0000, kModuleBytes = 1 << 20;
  const uint32_t shared = options.frames - kOwnFrames;
  Definitions definitions(file);
  definitions.add(kDefThread, {kTid}, "bench");
  definitions.add(kDefString, {1}, "bench/model.py");
  for (uint64_t i = 0; i < options.modules; ++i) {
    const uint64_t start = kFirstModule + i * kModuleBytes;
    definitions.add_module(start, start + kModuleBytes, "/lib/part_" + std::to_string(i) + ".so");
  }
  const uint32_t frame_count = shared + options.stacks * kOwnFrames;
  for (uint32_t i = 1; i <= frame_count; ++i) {
    if (options.modules != 0 && i > shared) {
      definitions.add_native_frame(i, kFirstModule + i % options.modules * kModuleBytes + i * 16);
      continue;
    }
    definitions.add(kDefString, {1 + i}, "function_" + std::to_string(i));
    definitions.add(kDefFrame, {i, 1, 1 + i, 10 * i});
  }
  for (uint32_t id = 1; id <= options.stacks; ++id) {
    std::vector<uint32_t> frames;
    if (id == 1) {
      for (uint32_t i = 1; i <= shared; ++i) frames.push_back(i);
    }
    for (uint32_t i = 0; i < kOwnFrames; ++i)
      frames.push_back(shared + 1 + (id - 1) * kOwnFrames + i);
    definitions.add_stack(id, id == 1 ? 0 : 1, static_cast<uint16_t>(id == 1 ? 0 : shared), frames);
  }
}

void make_events(File* file, const Options& options) {
  constexpr uint64_t kSlotBytes = 1 << 16;  // no block is larger, so no two overlap
  Random random;
  Events events(file);
  std::vector<uint32_t> sizes(options.live);
  auto draw_size = [&]() -> uint32_t {
    if (options.random_sizes) return static_cast<uint32_t>(1 + random.below(kSlotBytes));
    return static_cast<uint32_t>(1024 * (1 + random.below(64)));
  };
  auto address = [&](uint64_t slot) { return 0x7f00'0000'0000 + slot * kSlotBytes; };
  uint64_t written = 0;
  for (uint64_t slot = 0; slot < options.live && written < options.events; ++slot, ++written) {
    sizes[slot] = draw_size();
    events.add(kRawAlloc, address(slot), sizes[slot], 1 + static_cast<uint32_t>(random.below(options.stacks)));
  }
  while (written < options.events) {
    const uint64_t slot = random.below(options.live);
    events.add(kRawFreeCompleted, address(slot), sizes[slot], 0);
    if (++written == options.events) break;
    sizes[slot] = draw_size();
    events.add(kRawAlloc, address(slot), sizes[slot], 1 + static_cast<uint32_t>(random.below(options.stacks)));
    ++written;
  }
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc < 2) stop("usage: make_recording FOLDER --events N --live N [--sizes classes|random]");
  options.folder = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--events")
      options.events = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--live")
      options.live = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--sizes")
      options.random_sizes = std::string(argv[i + 1]) == "random";
    else if (name == "--stacks")
      options.stacks = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    else if (name == "--frames")
      options.frames = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    else if (name == "--modules")
      options.modules = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--processes")
      options.processes = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    else
      stop("unknown option " + name);
  }
  if (options.live == 0 || options.events == 0 || options.stacks == 0 || options.processes == 0)
    stop("--events, --live, --stacks and --processes must be above 0");
  if (options.frames <= kOwnFrames || options.frames > kMaxFrames)
    stop("--frames must be 3 to " + std::to_string(kMaxFrames));
  options.events = std::max<uint64_t>(1, options.events / options.processes);
  options.live = std::max<uint64_t>(1, options.live / options.processes);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  for (uint32_t number = 0; number < options.processes; ++number) {
    File file(options.folder, number);
    define_stacks(&file, options);
    make_events(&file, options);
    file.finish();
  }
}
