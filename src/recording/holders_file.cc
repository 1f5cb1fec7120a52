#include "recording/holders_file.h"


#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/error_text.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json_fields.h"
#include "recording/folders.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFileBytes = size_t{64} << 20;
constexpr size_t kMostHolders = 100'000, kMostTexts = 16;
constexpr size_t kMostHolderFiles = 4'096, kMostLooks = 64;
constexpr std::string_view kSchema = "gpumemprof.holders/";

uint64_t number_in(const Json& object, const char* key) {
  return number_field(object, key).value_or(0);
}

std::unexpected<Error> bad(std::string what) {
  return fail(ErrorCode::kBadInput, "not a holders file: " + what);
}

RunningFunction function_in(const Json& holder) {
  const auto function = holder.find("function");
  if (function == holder.end() || !function->is_object()) return {};
  return {text_field(*function, "name"), text_field(*function, "file")};
}

Status take_holders(const Json& list, HoldersLook* out) {
  if (!list.is_array() || list.size() > kMostHolders) return bad("not a list of holders");
  for (const Json& one : list) {
    if (!one.is_object()) return bad("a holder is not an object");
    out->holders.push_back({.path = text_field(one, "path"),
                            .name = text_field(one, "name"),
                            .container = text_field(one, "container"),
                            .owner = text_field(one, "owner"),
                            .through = texts_field(one, "through", kMostTexts),
                            .tensors = number_in(one, "tensors"),
                            .with_graph = number_in(one, "with_graph"),
                            .scalars = number_in(one, "scalars"),
                            .in_pairs = number_in(one, "in_pairs"),
                            .leaves = number_in(one, "leaves"),
                            .side_by_side = one.value("side_by_side", Json()) == Json(true),
                            .operations = texts_field(one, "operations", kMostTexts),
                            .function = function_in(one),
                            .object_id = number_in(one, "object_id"),
                            .entries = number_in(one, "entries"),
                            .most_entries = number_in(one, "most_entries"),
                            .limit = text_field(one, "limit")});
  }
  return {};
}

Status take_storages(const Json& list, HoldersLook* out) {
  if (!list.is_array()) return bad("not a list of storages");
  for (const Json& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
        !pair[1].is_number_unsigned()) {
      return bad("a storage is not an address and a holder");
    }
    const uint64_t holder = pair[1].get<uint64_t>();
    if (holder >= out->holders.size()) return bad("a storage refers to a missing holder");
    const bool is_new =
        out->by_address.try_emplace(pair[0].get<uint64_t>(), static_cast<uint32_t>(holder)).second;
    out->holders[holder].storages += is_new;
  }
  return {};
}

/// `storages`: as take_storages() has taken them.
void take_shown_bytes(const Json& storages, const Json& shown, HoldersLook* out) {
  if (shown.size() != storages.size()) return;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown[i].is_number_unsigned())
      out->shown_bytes.try_emplace(storages[i][0].get<uint64_t>(), shown[i].get<uint64_t>());
  }
}

Status take_look(const Json& json, HoldersLook* out) {
  if (!json.is_object()) return bad("a look is not an object");
  out->time_ns = number_in(json, "time_ns");
  out->why_incomplete = text_field(json, "why_incomplete");
  const auto gc = json.find("gc_enabled");
  out->is_gc_disabled = gc != json.end() && gc->is_boolean() && !gc->get<bool>();
  if (const auto memory = json.find("memory"); memory != json.end()) {
    const auto resident = number_field(*memory, "resident_bytes");
    const auto anonymous = number_field(*memory, "anonymous_bytes");
    if (resident && anonymous) {
      const auto bytes = [&](const char* key) { return number_field(*memory, key); };
      out->memory = {.resident_bytes = *resident,
                     .anonymous_bytes = *anonymous,
                     .file_bytes = bytes("file_bytes"),
                     .shared_bytes = bytes("shared_bytes"),
                     .malloc_live_bytes = bytes("malloc_live_bytes"),
                     .malloc_kept_bytes = bytes("malloc_kept_bytes"),
                     .python_arenas_bytes = bytes("python_arenas_bytes"),
                     .why_no_python_arenas = text_field(*memory, "why_no_python_arenas"),
                     .pinned_used_bytes = bytes("pinned_used_bytes"),
                     .pinned_cache_bytes = bytes("pinned_cache_bytes")};
    }
  }
  const auto holders = json.find("holders"), storages = json.find("storages");
  if (holders == json.end() || storages == json.end()) return bad("a look without holders");
  if (auto done = take_holders(*holders, out); !done) return done;
  if (auto done = take_storages(*storages, out); !done) return done;
  if (const Json* shown = list_field(json, "shown_bytes")) take_shown_bytes(*storages, *shown, out);
  return {};
}

void give_one_path_to_each_object(std::vector<HoldersLook>* looks) {
  std::map<std::pair<std::string, uint64_t>, std::string> paths;
  for (HoldersLook& look : std::views::reverse(*looks)) {
    for (TensorHolder& holder : look.holders) {
      if (holder.object_id == 0) continue;
      holder.path = paths.try_emplace({holder.name, holder.object_id}, holder.path).first->second;
    }
  }
}

}  // namespace

bool is_graph_of_few(const TensorHolder& holder) {
  constexpr uint64_t kFew = 3, kMany = 16;
  return holder.with_graph != 0 && holder.tensors <= kFew &&
         holder.storages >= kMany * holder.tensors;
}

Result<ProcessHolders> parse_holders(std::string_view text) {
  JsonCheck check(SIZE_MAX);
  if (!Json::sax_parse(text, &check)) return fail_at(check.error_at, "not a holders file: not JSON");
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("no object");
  const std::string schema = text_field(json, "schema");
  if (!schema.starts_with(kSchema)) return bad("unknown schema");
  if (schema.substr(kSchema.size()) != "1") {
    return fail(ErrorCode::kUnsupported, "a holders file of a later version: " + schema);
  }
  ProcessHolders out;
  const uint64_t pid = number_in(json, "pid");
  if (pid == 0 || pid > std::numeric_limits<uint32_t>::max()) return bad("no pid");
  out.pid = static_cast<uint32_t>(pid);
  out.start_ticks = number_in(json, "start_ticks");
  const auto worker = json.find("worker");
  out.is_worker = worker != json.end() && worker->is_boolean() && worker->get<bool>();
  const auto looks = json.find("looks");
  if (looks == json.end() || !looks->is_array() || looks->size() > kMostLooks)
    return bad("no looks");
  for (const Json& one : *looks) {
    if (auto done = take_look(one, &out.looks.emplace_back()); !done) {
      return std::unexpected(done.error());
    }
  }
  std::ranges::stable_sort(out.looks, {}, &HoldersLook::time_ns);
  give_one_path_to_each_object(&out.looks);
  return out;
}

std::vector<ProcessHolders> read_holders(const std::vector<std::string>& paths,
                                         std::vector<std::string>* problems) {
  std::vector<std::string> files;
  for (const std::string& folder : folders_of(paths)) {
    each_name(folder, [&](std::string_view name) {
      if (name.starts_with("holders.") && name.ends_with(".json"))
        files.push_back((folder + '/').append(name));
    });
  }
  std::ranges::sort(files);
  std::vector<ProcessHolders> out;
  for (size_t i = 0; i < files.size() && i < kMostHolderFiles; ++i) {
    const auto text = read_small_file(files[i], kMostFileBytes);
    auto parsed = text ? parse_holders(*text) : std::unexpected(text.error());
    if (parsed) {
      out.push_back(std::move(*parsed));
      continue;
    }
    problems->push_back(files[i] + ": " + text_of(parsed.error()));
  }
  return out;
}

}  // namespace gpumemprof
