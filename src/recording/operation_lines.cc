#include "recording/operation_lines.h"


#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error_text.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json_fields.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostBytes = 256u << 20;
constexpr size_t kMostText = 4096, kMostDepth = 1024, kMostNested = 4;
constexpr size_t kMostLineFiles = 10'000;
constexpr std::string_view kOperationsSchema = "gpumemprof.operations/1";

/// What is checked while a document is taken apart; the first failure stays.
class Taker {
 public:
  uint64_t number(const Json& object, const char* key, uint64_t most) {
    auto it = object.find(key);
    if (it != object.end() && it->is_number_unsigned() && it->get<uint64_t>() <= most) {
      return it->get<uint64_t>();
    }
    return fail(std::string(key) + " has an impossible value"), 0;
  }
  std::string text(const Json& value) {
    if (value.is_string() && value.get_ref<const std::string&>().size() <= kMostText) {
      return value.get<std::string>();
    }
    return fail("a name is not a string, or is too long"), std::string();
  }
  const Json& member(const Json& object, const char* key, Json::value_t type) {
    static const Json kNothing;
    auto it = object.find(key);
    if (it != object.end() && it->type() == type) return *it;
    return fail(std::string(key) + " is missing or of the wrong kind"), kNothing;
  }
  uint32_t index(const Json& value, size_t size) {
    if (value.is_number_unsigned() && value.get<uint64_t>() < size) return value.get<uint32_t>();
    return fail("an index out of range"), 0;
  }
  void fail(std::string why) {
    if (error.empty()) error = std::move(why);
  }
  std::string error;
};

void take_frames(const Json& list, Taker* take, OperationFile* out) {
  for (const Json& item : list) {
    if (!item.is_array() || item.size() != 3 || !item[1].is_number_unsigned()) {
      return take->fail("a frame is not [file, line, function]");
    }
    const uint64_t line = std::min<uint64_t>(item[1].get<uint64_t>(), UINT32_MAX);
    out->frames.push_back({take->text(item[0]), take->text(item[2]), static_cast<uint32_t>(line)});
  }
}

void take_stacks(const Json& list, Taker* take, OperationFile* out) {
  for (const Json& item : list) {
    if (!item.is_array() || item.size() > kMostDepth) return take->fail("a stack is too deep");
    std::vector<uint32_t>& stack = out->stacks.emplace_back();
    for (const Json& frame : item) stack.push_back(take->index(frame, out->frames.size()));
  }
}

void take_operations(const Json& object, Taker* take, OperationFile* out) {
  for (const auto& [name, stack] : object.items()) {
    out->operations[name] = stack.is_null() ? UINT32_MAX : take->index(stack, out->stacks.size());
  }
}

/// They came later: files without them are good.
void take_facts(const Json& document, Taker* take, OperationFile* out) {
  if (auto list = document.find("variables"); list != document.end() && list->is_object()) {
    for (const auto& [name, item] : list->items()) {
      if (!item.is_array() || item.size() != 2)
        return take->fail("a variable is not [name, layer]");
      out->variables[name] = {take->text(item[0]),
                              item[1].is_null() ? std::string() : take->text(item[1])};
    }
  }
  const auto take_texts = [&](const char* key, auto* to) {
    auto list = document.find(key);
    if (list == document.end() || !list->is_object()) return;
    for (const auto& [name, item] : list->items()) (*to)[name] = take->text(item);
  };
  take_texts("initial_values", &out->initial_values);
  take_texts("xla", &out->xla);
  if (auto list = document.find("layers"); list != document.end()) {
    if (!list->is_object()) return take->fail("layers are not a list of scopes");
    for (const auto& [scope, path] : list->items()) {
      out->layers[scope] = path.is_null() ? std::string() : take->text(path);
    }
  }
}

/// Of an operation, the entry of its name. Calls of functions put their own names in front, and so
/// do the optimizers of graphs: leading parts go until there is one.
template <class Map>
auto find_operation(const Map& map, std::string_view name) {
  auto found = map.find(name);
  while (found == map.end()) {
    const size_t slash = name.find('/');
    if (slash == name.npos) break;
    name.remove_prefix(slash + 1);
    found = map.find(name);
  }
  return found;
}

/// The layer whose scope an operation stands in; empty where none is known. The name is looked up
/// as its graph has it, so that no part of it that a caller put in front can be taken for a scope.
std::string_view layer_of(const OperationFile& file, std::string_view operation) {
  if (file.layers.empty()) return {};
  const auto known = find_operation(file.operations, operation);
  if (known == file.operations.end()) return {};
  std::string_view scope = known->first;
  // Gradients stand in the scope of what they are the gradients of, under one of their own.
  if (scope.starts_with("gradient_tape/") || scope.starts_with("gradient_tape_")) {
    scope.remove_prefix(std::min(scope.find('/'), scope.size() - 1) + 1);
  }
  for (size_t slash; (slash = scope.rfind('/')) != scope.npos;) {
    scope = scope.substr(0, slash);
    if (auto layer = file.layers.find(scope); layer != file.layers.end()) return layer->second;
  }
  return {};
}

}  // namespace

Result<OperationFile> parse_operation_file(std::string_view text) {
  JsonCheck check(kMostNested);
  if (!Json::sax_parse(text, &check)) return fail_at(check.error_at, "not a list of operations");
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return fail_at(0, "not a list of operations");
  OperationFile out;
  Taker take;
  if (take.text(take.member(document, "schema", Json::value_t::string)) != kOperationsSchema) {
    return fail_at(0, "not a list of operations that this version knows");
  }
  out.host = take.text(take.member(document, "host", Json::value_t::string));
  out.pid = static_cast<uint32_t>(take.number(document, "pid", UINT32_MAX));
  out.start_ticks = take.number(document, "start_ticks", UINT64_MAX);
  take_frames(take.member(document, "frames", Json::value_t::array), &take, &out);
  take_stacks(take.member(document, "stacks", Json::value_t::array), &take, &out);
  take_operations(take.member(document, "operations", Json::value_t::object), &take, &out);
  take_facts(document, &take, &out);
  if (auto left = document.find("left_out"); left != document.end() && left->is_object()) {
    out.left_out_operations = take.number(*left, "operations", UINT64_MAX);
    out.left_out_graphs = take.number(*left, "graphs", UINT64_MAX);
    if (left->contains("scopes")) out.left_out_scopes = take.number(*left, "scopes", UINT64_MAX);
  }
  if (auto list = document.find("errors"); list != document.end() && list->is_object()) {
    for (const auto& [why, count] : list->items()) {
      if (why.size() > kMostText) take.fail("an error is too long");
      out.errors[why] = take.number(*list, why.c_str(), UINT64_MAX);
    }
  }
  if (!take.error.empty()) return fail_at(0, take.error);
  return out;
}

void OperationLines::load_folder(const std::string& folder, Loss* loss) {
  const auto is_wanted = [](std::string_view name) {
    return name.starts_with("operations.") && name.ends_with(".json");
  };
  for (const std::string& name : names_in(folder, is_wanted, kMostLineFiles)) {
    auto text = read_small_file(folder + '/' + name, kMostBytes);
    auto file =
        text ? parse_operation_file(*text) : Result<OperationFile>(std::unexpected(text.error()));
    if (!file) {
      loss->add(0, 0, name + ": " + text_of(file.error()) + ": operations have no lines");
      unreadable_.insert(name);
      continue;
    }
    std::vector<uint32_t> none(file->stacks.size(), UINT32_MAX);
    files_.push_back({.name = name, .file = std::move(*file), .stacks = std::move(none)});
  }
}

bool OperationLines::is_idle(const Tables& tables) const {
  return files_.empty() && !tables.strings.find(kOperationFile);
}

void OperationLines::tell_losses(const Tables& tables, Loss* loss) const {
  for (const auto& [process, count] : without_file_) {
    loss->add(0, 0,
              std::to_string(count) + (count == 1 ? " operation" : " operations") +
                  " of graphs " + (count == 1 ? "has" : "have") + " no source lines: process " +
                  std::to_string(tables.processes[process].pid) +
                  " was killed before it wrote them, or still runs");
  }
  for (const Known& known : files_) {
    const OperationFile& file = known.file;
    for (const auto& [why, count] : file.errors) {
      loss->add(0, 0,
                known.name + ": could not read " + why +
                    (count == 1 ? "" : ", " + std::to_string(count) + " times") +
                    ": operations have no lines or layers");
    }
    const bool is_partial = file.left_out_operations > 0 || file.left_out_graphs > 0;
    if (known.unknown > 0 && is_partial) {
      loss->add(0, 0,
                known.name + ": " + std::to_string(known.unknown) +
                    (known.unknown == 1 ? " operation has" : " operations have") +
                    " no source lines: their graphs were deleted, or time ran out");
    }
    if (file.left_out_scopes > 0) {
      loss->add(0, 0,
                known.name + ": " + std::to_string(file.left_out_scopes) +
                    " graph scopes exceeded the limit: their layers are unknown");
    }
  }
}

OperationLines::Known* OperationLines::find(const Process& process) {
  for (Known& known : files_) {
    const OperationFile& file = known.file;
    if (file.pid == process.pid && file.start_ticks == process.start_ticks &&
        file.host == process.host) {
      return &known;
    }
  }
  return nullptr;
}

uint32_t OperationLines::made_by(Known* known, uint32_t index, Tables* tables) {
  uint32_t& id = known->stacks[index];
  if (id != UINT32_MAX) return id;
  id = 0;
  for (uint32_t frame : known->file.stacks[index]) {
    const OperationFile::Place& place = known->file.frames[frame];
    id = tables->stacks.push(
        id, tables->stacks.intern_frame({tables->strings.intern(place.file),
                                         tables->strings.intern(place.function), place.line}));
  }
  if (id != 0) {
    const Frame between{tables->strings.intern(kOperationFile), tables->strings.intern(kMadeBy), 0};
    id = tables->stacks.push(id, tables->stacks.intern_frame(between));
  }
  return id;
}

uint32_t OperationLines::with_facts(const OperationFile& file, std::string_view operation,
                                    uint32_t below, Tables* tables) {
  const auto push = [&](std::string_view kind, std::string_view what) {
    if (what.empty()) return;
    const Frame frame{tables->strings.intern(kind), tables->strings.intern(what), 0};
    below = tables->stacks.push(below, tables->stacks.intern_frame(frame));
  };
  push(kLayerScopeFile, layer_of(file, operation));
  const auto variable = find_operation(file.variables, operation);
  // An initial value is made by operations in the scope of the variable's name.
  const size_t initializer = operation.find("/Initializer/");
  const auto initial = find_operation(file.initial_values, operation.substr(0, initializer));
  if (variable != file.variables.end()) {
    push(kLayerFile, variable->second.layer);
    push(kVariableFile, variable->second.name);
  } else if (initializer != operation.npos && initial != file.initial_values.end()) {
    push(kLayerFile, initial->second);
  }
  if (const auto xla = find_operation(file.xla, operation); xla != file.xla.end()) {
    push(kClusterFile, xla->second);
  }
  return below;
}

uint32_t OperationLines::with_lines(uint32_t process, uint32_t stack, Tables* tables) {
  const StackTable::Node node = tables->stacks.node(stack);
  if (node.depth == 0 || process >= tables->processes.size()) return stack;
  const Frame frame = tables->stacks.frame(node.frame);
  if (tables->strings.get(frame.file) != kOperationFile) return stack;
  const Process& by = tables->processes[process];
  Known* known = find(by);
  if (!known) {
    const bool would_write = !by.python_version.empty() && !by.stacks.starts_with("none");
    const bool is_unread =
        unreadable_.contains("operations." + std::to_string(by.pid) + '.' +
                             std::to_string(by.start_ticks) + ".json");
    if (node.depth == 1 && would_write && !by.exited_cleanly && !is_unread)
      ++without_file_[process];
    return stack;
  }
  const std::string name(tables->strings.get(frame.function));
  uint32_t below = node.parent;
  if (node.depth == 1) {
    const auto found = find_operation(known->file.operations, name);
    // Where several have the name, which of them it was is not known.
    known->unknown += found == known->file.operations.end();
    const bool has_place = found != known->file.operations.end() && found->second != UINT32_MAX;
    if (has_place) below = made_by(known, found->second, tables);
  }
  below = with_facts(known->file, name, below, tables);
  return below == node.parent ? stack : tables->stacks.push(below, node.frame);
}

void OperationLines::apply(EventBatch* batch, Tables* tables) {
  for (size_t i = 0; i < batch->size(); ++i) {
    const uint32_t stack = batch->stack[i];
    if (stack == 0 || batch->device[i] >= tables->devices.size()) continue;
    const uint32_t process = tables->devices[batch->device[i]].process;
    auto [known, is_new] = stacks_.try_emplace(uint64_t{process} << 32 | stack, stack);
    if (is_new) known->second = with_lines(process, stack, tables);
    batch->stack[i] = known->second;
  }
}

}  // namespace gpumemprof
