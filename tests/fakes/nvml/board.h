// The machine that the fake shows: FAKE_NVML_BOARD names a file of boards/, or one like them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fake_nvml {

struct Process {
  unsigned pid = 0;
  std::string kind;              ///< compute, graphics or mps
  std::optional<uint64_t> used;  ///< bytes; empty: not available
  std::optional<unsigned> sm;    ///< percent
};

/// A GPU, or a slice of one: NVML has one kind of handle for both.
struct Board {
  std::string name, uuid, bus;
  uint64_t total = 0, reserved = 0, allocated = 0;  ///< bytes
  uint64_t context = 0;   ///< bytes that a context takes, in the fake driver
  unsigned index = ~0u;   ///< in the machine; of a slice none
  unsigned gpu_percent = 0, memory_percent = 0, temperature = 0, power_mw = 0;
  std::optional<bool> mig;  ///< empty: a board that knows none
  unsigned gpu_instance = ~0u, compute_instance = ~0u;
  std::map<std::string, int> refuse;  ///< what is asked: the code that is answered
  std::vector<Process> processes;
  std::vector<std::unique_ptr<Board>> slices;
  bool is_slice = false;

  int answer(const std::string& what) const;  ///< 0 unless refused
};

struct Machine {
  std::string driver;
  int init = 0;
  unsigned process_entry_bytes = 24;
  std::vector<std::unique_ptr<Board>> boards;
};

/// Reads the file; null with a message on stderr where it cannot be.
std::unique_ptr<Machine> load_machine();

}  // namespace fake_nvml
