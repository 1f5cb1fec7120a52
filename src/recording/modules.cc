#include "recording/modules.h"

#include <stdio.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "base/host_name.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostModules = 65536;

std::string_view base_name(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string hex(uint64_t value) {
  char text[24];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string this_host() {
  char name[256] = {}, clean[sizeof(name)];
  gethostname(name, sizeof(name) - 1);
  copy_host_name(name, clean, sizeof(clean));
  return clean;
}

}  // namespace

ModuleList::ModuleList(std::string host, uint64_t recorded_ns)
    : ask_files_(!host.empty() && this_host().starts_with(host)), recorded_ns_(recorded_ns) {}

void ModuleList::add(Module module) {
  if (modules_.size() >= kMostModules) return;
  const auto [added, is_new] = modules_.insert(std::move(module));
  if (!is_new) return;
  cover(*added);
  for (const uint64_t pc : outside_) places_.erase(pc);
  outside_.clear();
}

/// The range of `module` is its alone from now on.
void ModuleList::cover(const Module& module) {
  if (module.start >= module.end) return;
  auto at = pieces_.upper_bound(module.start);
  if (at != pieces_.begin() && std::prev(at)->second.end > module.start) --at;
  while (at != pieces_.end() && at->first < module.end) {
    const auto [start, piece] = *at;
    at = pieces_.erase(at);
    if (start < module.start) pieces_.emplace(start, Piece{module.start, piece.module});
    if (piece.end > module.end) pieces_.emplace(module.end, piece);
  }
  pieces_.emplace(module.start, Piece{module.end, &module});
}

const Module* ModuleList::module_at(uint64_t pc) const {
  const auto above = pieces_.upper_bound(pc);
  if (above == pieces_.begin()) return nullptr;
  const Piece& piece = std::prev(above)->second;
  return pc < piece.end ? piece.module : nullptr;
}

const ModuleList::Place& ModuleList::place(uint64_t pc) {
  auto& known = places_[pc];
  if (known) return *known;
  known = std::make_unique<Place>();
  known->module = module_at(pc);
  if (!known->module) outside_.push_back(pc);
  if (!known->module || !ask_files_) return *known;
  auto [table, added] = symbols_.try_emplace(known->module->path);
  if (added) table->second = SymbolTable::open(known->module->path, recorded_ns_);
  if (table->second) known->function = table->second->name(pc - known->module->bias);
  return *known;
}

uint32_t ModuleList::frame(uint64_t pc, Tables* tables) {
  const Place& where = place(pc);
  std::string function = where.function;
  std::string_view file = where.module ? std::string_view(where.module->path) : std::string_view{};
  if (function.empty() && where.module) {
    function = hex(pc - where.module->bias) + " in " + std::string(base_name(file));
  }
  if (function.empty()) function = hex(pc);
  return tables->stacks.intern_frame(
      {tables->strings.intern(file), tables->strings.intern(function), 0});
}

bool ModuleList::is_interpreter(uint64_t pc) {
  const Place& where = place(pc);
  if (where.function.starts_with("_PyEval_EvalFrameDefault")) return true;
  if (!where.module) return false;
  std::string_view name = base_name(where.module->path);
  return name.starts_with("python3") || name.starts_with("libpython3");
}

}  // namespace gpumemprof
