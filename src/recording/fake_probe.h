// For tests: writes files as the probe does, into memory, from format.h alone.
#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <string>
#include <vector>

#include "format/format.h"

namespace gpumemprof::for_tests {

/// What the reader should answer for one event.
struct ExpectedEvent {
  uint64_t time_ns = 0, address = 0, size_bytes = 0;
  uint8_t action = 0;
  uint32_t tid = 0;
  std::string leaf;          ///< function of the allocating frame, empty where there is no stack
  int64_t step = INT64_MIN;  ///< that of kNoStep where it has none
  bool operator==(const ExpectedEvent&) const = default;
};
void PrintTo(const ExpectedEvent& event, std::ostream* out);

class FakeProbe {
 public:
  /// A thread's turn with a buffer.
  struct Thread {
    uint64_t offset;  // of its stage
    uint32_t stream, tid;
    uint32_t events_sequence = 0, definitions_sequence = 0;
    uint64_t first_ordinal = 0;
    std::vector<format::RawEvent> events;
    std::string definitions;
    uint32_t next_id = 1;
    int64_t step = kNone, told_step = kNone;
    static constexpr int64_t kNone = INT64_MIN;
  };

  /// `half_records`: a half is written out when it has that many, to make chunks without thousands
  /// of events.
  explicit FakeProbe(uint64_t recording_id = 0x1234, uint32_t pid = 100,
                     uint32_t half_records = 64);

  format::FileHeader& header() { return header_; }
  /// As if a process of this machine and boot had written it, which is gone: PIDs end at 4194304.
  void write_as_dead_process();
  format::FileState& state() { return state_; }

  Thread& start_thread(uint32_t tid, const std::string& name);
  /// The buffer of a dead thread, for another one: a new stream.
  void reuse(Thread* thread, uint32_t tid, const std::string& name);
  /// Defines a stack of Python frames `function@file:line`, root first; answers its id.
  uint32_t define_stack(Thread* thread, const std::vector<std::string>& functions,
                        uint32_t line = 1);
  void define_device(Thread* thread, uint8_t device_class, int8_t type, int8_t index,
                     const std::string& name = "");
  void define(Thread* thread, format::DefinitionType type, const std::string& body);

  void alloc(Thread* thread, uint64_t time_ns, uint64_t address, uint64_t size, uint32_t stack,
             uint32_t device_class = 0, uint64_t requested = 0);
  void free(Thread* thread, uint64_t time_ns, uint64_t address, uint32_t device_class = 0,
            uint64_t size = 0);
  /// Defines a string; answers its id.
  uint32_t define_text(Thread* thread, const std::string& text);
  void mark(Thread* thread, uint64_t time_ns, format::RawMarkKind kind, uint64_t address = 0,
            uint64_t value = 0, uint32_t text = 0);
  /// A stack of frames {file, function}, root first, without lines where the file is a label.
  uint32_t define_labelled_stack(Thread* thread,
                                 const std::vector<std::pair<std::string, std::string>>& frames);
  void totals(Thread* thread, uint64_t time_ns, uint64_t allocated, uint64_t reserved,
              uint32_t device_class);
  void record(Thread* thread, format::RawEvent event);
  /// What the thread allocates for from now on; Thread::kNone: nothing.
  void begin_step(Thread* thread, int64_t step) { thread->step = step; }
  /// Writes out what the halves hold, without bumping the word where `bump` is false (a death
  /// between).
  void flush(Thread* thread, bool bump = true);
  uint64_t add_chunk(format::ChunkHeader header, const std::string& payload);
  uint64_t claim(uint64_t bytes);

  /// The file as it is now.
  std::string bytes();
  /// 0 on success.
  int save(const std::string& path);

 private:
  /// Before an event that has another step than the one before in its half; true where it had.
  bool tell_step(Thread* thread, uint64_t time_ns);
  void put_stage(const Thread& thread);
  uint32_t define_frames(Thread* thread,
                         const std::vector<std::pair<std::string, std::string>>& named,
                         uint32_t line);

  format::FileHeader header_{};
  format::FileState state_{};
  format::FileCounts counts_{};
  uint32_t half_records_;
  std::string file_;
  std::deque<Thread> threads_;
};

}  // namespace gpumemprof::for_tests
