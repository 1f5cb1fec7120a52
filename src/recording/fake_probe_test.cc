#include "recording/fake_probe.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "base/varint.h"
#include "format/checksum.h"
#include "recording/test_reading.h"

namespace gpumemprof::for_tests {

using namespace format;

void FakeProbe::write_as_dead_process() {
  std::string boot = read_file("/proc/sys/kernel/random/boot_id");
  memcpy(header_.boot_id, boot.data(), std::min<size_t>(boot.size() - 1, 39));
  header_.boot_id[36] = 0;
  header_.pid = 4194304 + 99;
}

FakeProbe::FakeProbe(uint64_t recording_id, uint32_t pid, uint32_t half_records)
    : half_records_(half_records), file_(kPage, '\0') {
  memcpy(header_.magic, kFileMagic, sizeof(kFileMagic));
  header_.major = kMajor, header_.minor = kMinor;
  header_.header_bytes = kPage;
  header_.recording_id = recording_id;
  header_.pid = pid, header_.parent_pid = 1;
  header_.start_ticks = 77;
  header_.monotonic_ns = 1000, header_.realtime_ns = 1'700'000'000'000'000'000;
  header_.stack_mode = kStacksPython;
  strcpy(header_.host, "box");
  strcpy(header_.boot_id, "boot-1");
  strcpy(header_.command, "python train.py");
  state_.python_state = kPythonOk;
  state_.python_version = 0x030b02;
}

uint64_t FakeProbe::claim(uint64_t bytes) {
  uint64_t offset = file_.size();
  file_.resize(offset + round_to_page(bytes));
  return offset;
}

uint64_t FakeProbe::add_chunk(ChunkHeader header, const std::string& payload) {
  header.magic = kChunkMagic;
  header.length = static_cast<uint32_t>(payload.size());
  header.recording_id = header_.recording_id;
  header.crc32c = chunk_crc(header, header.type == kStage ? nullptr : payload.data());
  uint64_t offset = claim(sizeof(header) + payload.size());
  memcpy(file_.data() + offset, &header, sizeof(header));
  memcpy(file_.data() + offset + sizeof(header), payload.data(), payload.size());
  return offset;
}

FakeProbe::Thread& FakeProbe::start_thread(uint32_t tid, const std::string& name) {
  ChunkHeader header{};
  header.type = kStage;
  Thread thread{add_chunk(header, std::string(kStageBytes - sizeof(header), '\0')), 0, tid};
  Thread& kept = threads_.emplace_back(std::move(thread));
  reuse(&kept, tid, name);
  return kept;
}

void FakeProbe::reuse(Thread* thread, uint32_t tid, const std::string& name) {
  flush(thread);
  thread->stream = static_cast<uint32_t>(++state_.next_stream);
  thread->tid = tid;
  thread->first_ordinal = 0;
  thread->next_id = 1;
  std::string body;
  put_number(&body, tid);
  define(thread, kDefThread, body + name);
}

void FakeProbe::define(Thread* thread, DefinitionType type, const std::string& body) {
  DefinitionHeader header{static_cast<uint8_t>(type), 0, static_cast<uint16_t>(body.size())};
  std::string record(reinterpret_cast<const char*>(&header), sizeof(header));
  record += body;
  uint8_t parity = salt(thread->stream, thread->definitions_sequence);
  for (char c : record) parity ^= static_cast<uint8_t>(c);
  record[1] = static_cast<char>(parity);
  thread->definitions += record;
}

uint32_t FakeProbe::define_text(Thread* thread, const std::string& text) {
  const uint32_t id = thread->next_id++;
  std::string body;
  put_number(&body, id);
  define(thread, kDefString, body + text);
  return id;
}

uint32_t FakeProbe::define_stack(Thread* thread, const std::vector<std::string>& functions,
                                 uint32_t line) {
  std::vector<std::pair<std::string, std::string>> frames;
  for (const std::string& function : functions) frames.emplace_back(function + ".py", function);
  return define_frames(thread, frames, line);
}

uint32_t FakeProbe::define_labelled_stack(
    Thread* thread, const std::vector<std::pair<std::string, std::string>>& frames) {
  return define_frames(thread, frames, 1);
}

uint32_t FakeProbe::define_frames(Thread* thread,
                                  const std::vector<std::pair<std::string, std::string>>& named,
                                  uint32_t line) {
  std::vector<uint32_t> frames;
  for (const auto& [file, function] : named) {
    const uint32_t file_id = define_text(thread, file), function_id = define_text(thread, function);
    const uint32_t frame_id = thread->next_id++, at = file.starts_with('<') ? 0 : line;
    std::string body;
    for (uint32_t v : {frame_id, file_id, function_id, at}) put_number(&body, v);
    define(thread, kDefFrame, body);
    frames.push_back(frame_id);
  }
  uint32_t id = thread->next_id++;
  std::string body;
  put_number(&body, id), put_number(&body, uint32_t{0});
  put_number(&body, uint16_t{0}), put_number(&body, static_cast<uint16_t>(frames.size()));
  for (uint32_t frame : frames) put_number(&body, frame);
  define(thread, kDefStack, body);
  return id;
}

void FakeProbe::define_device(Thread* thread, uint8_t device_class, int8_t type, int8_t index,
                              const std::string& name) {
  std::string body;
  put_number(&body, device_class), put_number(&body, type), put_number(&body, index);
  put_number(&body, uint8_t{1}), put_number(&body, uint8_t{0});
  body += name;
  define(thread, kDefDevice, body);
}

void FakeProbe::record(Thread* thread, RawEvent event) { thread->events.push_back(event); }

static uint8_t salt_of(const FakeProbe::Thread* thread) {
  return salt(thread->stream, thread->events_sequence);
}

void FakeProbe::alloc(Thread* thread, uint64_t time_ns, uint64_t address, uint64_t size,
                      uint32_t stack, uint32_t device_class, uint64_t requested) {
  if (thread->events.size() + 4 > half_records_) flush(thread);
  if (tell_step(thread, time_ns) || size > kSizeMask || requested)
    record(thread,
           pack(time_ns, requested, device_class, size >> 37, kRawWide, 0, salt_of(thread)));
  record(thread, pack(time_ns, address, device_class, size, kRawAlloc, stack, salt_of(thread)));
}

void FakeProbe::free(Thread* thread, uint64_t time_ns, uint64_t address, uint32_t device_class,
                     uint64_t size) {
  if (thread->events.size() + 4 > half_records_) flush(thread);
  if (size > kSizeMask)
    record(thread, pack(time_ns, 0, device_class, size >> 37, kRawWide, 0, salt_of(thread)));
  RawAction action = device_class > 1 ? kRawFreeRequested : kRawFreeCompleted;
  record(thread, pack(time_ns, address, device_class, size, action, 0, salt_of(thread)));
}

void FakeProbe::mark(Thread* thread, uint64_t time_ns, RawMarkKind kind, uint64_t address,
                     uint64_t value, uint32_t text) {
  if (thread->events.size() + 4 > half_records_) flush(thread);
  record(thread, pack_mark(time_ns, kind, address, value, text, salt_of(thread)));
}

bool FakeProbe::tell_step(Thread* thread, uint64_t time_ns) {
  if (thread->step == thread->told_step) return false;
  thread->told_step = thread->step;
  const bool is_known = thread->step != Thread::kNone;
  record(thread, pack_step(time_ns, is_known, thread->step, salt_of(thread)));
  return true;
}

void FakeProbe::totals(Thread* thread, uint64_t time_ns, uint64_t allocated, uint64_t reserved,
                       uint32_t device_class) {
  record(thread, pack(time_ns, allocated, device_class, reserved / 512, kRawTotals,
                      static_cast<uint32_t>(reserved % 512), salt_of(thread)));
}

void FakeProbe::flush(Thread* thread, bool bump) {
  ChunkHeader header{};
  header.stream = thread->stream;
  if (!thread->definitions.empty()) {
    header.type = kRawDefinitions;
    header.sequence = thread->definitions_sequence;
    add_chunk(header, thread->definitions);
    ++thread->definitions_sequence;
    thread->definitions.clear();
  }
  if (thread->events.empty()) return;
  header.type = kRawEvents;
  header.sequence = thread->events_sequence;
  header.count = static_cast<uint32_t>(thread->events.size());
  header.first_ordinal = thread->first_ordinal;
  header.time_first_ns = time_of(thread->events.front());
  header.time_last_ns = time_of(thread->events.back());
  counts_.written_events += events_among(thread->events.data(), header.count);
  add_chunk(header, std::string(reinterpret_cast<const char*>(thread->events.data()),
                                thread->events.size() * sizeof(RawEvent)));
  if (!bump) return;
  thread->first_ordinal += thread->events.size();
  ++thread->events_sequence;
  thread->events.clear();
  thread->told_step = Thread::kNone;
}

void FakeProbe::put_stage(const Thread& thread) {
  char* base = file_.data() + thread.offset;
  StageControl control{};
  control.events_published = uint64_t{thread.events_sequence} << 32 | thread.events.size();
  control.definitions_published =
      uint64_t{thread.definitions_sequence} << 32 | thread.definitions.size();
  control.first_ordinal[thread.events_sequence & 1] = thread.first_ordinal;
  control.stream = thread.stream, control.tid = thread.tid;
  memcpy(base + sizeof(ChunkHeader), &control, sizeof(control));
  memcpy(base + kStageEventsOffset, thread.events.data(), thread.events.size() * sizeof(RawEvent));
  memcpy(base + kStageDefinitionsOffset, thread.definitions.data(), thread.definitions.size());
}

std::string FakeProbe::bytes() {
  for (const Thread& thread : threads_) put_stage(thread);
  header_.crc32c = header_crc(header_);
  state_.next_offset = file_.size();
  memcpy(file_.data(), &header_, sizeof(header_));
  memcpy(file_.data() + kStateOffset, &state_, sizeof(state_));
  counts_.stages = threads_.size();
  memcpy(file_.data() + kCountsOffset, &counts_, sizeof(counts_));
  return file_;
}

int FakeProbe::save(const std::string& path) {
  std::string content = bytes();
  FILE* f = fopen(path.c_str(), "wb");
  if (!f) return 1;
  size_t n = fwrite(content.data(), 1, content.size(), f);
  return fclose(f) != 0 || n != content.size();
}

}  // namespace gpumemprof::for_tests
