#include "board.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "yaml.h"

namespace fake_nvml {
namespace {

constexpr uint64_t kMib = 1 << 20;

std::unique_ptr<Board> board_of(const Node& node, bool is_slice) {
  auto board = std::make_unique<Board>();
  board->is_slice = is_slice;
  board->name = node.text_of("name"), board->uuid = node.text_of("uuid");
  board->bus = node.text_of("bus");
  board->total = node.number_of("total_mib").value_or(0) * kMib;
  board->reserved = node.number_of("reserved_mib").value_or(0) * kMib;
  board->allocated = node.number_of("allocated_mib").value_or(0) * kMib;
  board->context = node.number_of("context_mib").value_or(496) * kMib;
  const auto small = [&](const char* key) {
    return static_cast<unsigned>(node.number_of(key).value_or(0));
  };
  board->gpu_percent = small("gpu_percent"), board->memory_percent = small("memory_percent");
  board->temperature = small("temperature"), board->power_mw = small("power_mw");
  if (node.find("mig")) board->mig = node.text_of("mig") == "on";
  if (is_slice) board->gpu_instance = small("gpu_instance");
  if (is_slice) board->compute_instance = small("compute_instance");
  if (const Node* refuse = node.find("refuse"))
    for (const auto& [what, code] : refuse->map) board->refuse[what] = std::stoi(code.text);
  for (const Node& one : node.list_of("processes")) {
    Process process{.pid = static_cast<unsigned>(one.number_of("pid").value_or(0)),
                    .kind = one.text_of("kind", "compute")};
    if (const auto used = one.number_of("used_mib")) process.used = *used * kMib;
    if (const auto sm = one.number_of("sm")) process.sm = static_cast<unsigned>(*sm);
    board->processes.push_back(std::move(process));
  }
  for (const Node& one : node.list_of("slices")) board->slices.push_back(board_of(one, true));
  return board;
}

}  // namespace

int Board::answer(const std::string& what) const {
  const auto at = refuse.find(what);
  return at == refuse.end() ? 0 : at->second;
}

std::unique_ptr<Machine> load_machine() {
  const char* path = std::getenv("FAKE_NVML_BOARD");
  std::ifstream file(path ? path : "");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string error = "FAKE_NVML_BOARD names no file that can be read";
  const auto root = text.empty() ? std::nullopt : parse_yaml(text, &error);
  if (!root) {
    std::fprintf(stderr, "fake NVML: %s\n", error.c_str());
    return nullptr;
  }
  auto machine = std::make_unique<Machine>();
  machine->driver = root->text_of("driver");
  machine->init = static_cast<int>(root->number_of("init").value_or(0));
  machine->process_entry_bytes =
      static_cast<unsigned>(root->number_of("process_entry_bytes").value_or(24));
  unsigned index = 0;
  for (const Node& node : root->list_of("devices"))
    machine->boards.push_back(board_of(node, false)), machine->boards.back()->index = index++;
  return machine;
}

}  // namespace fake_nvml
