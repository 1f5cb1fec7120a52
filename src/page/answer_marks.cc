// marks: what every view shows at its moment.
#include <algorithm>

#include "page/answers.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

enum class Kind : uint8_t {
  kStepEnd,
  kPhase,
  kAnnotation,
  kOutOfMemory,
  kUnknownBefore,
  kSegmentAdded,
  kSegmentRemoved,
};
constexpr const char* kKindNames[] = {"step end",       "phase",          "annotation",
                                      "out of memory",  "unknown before", "segment added",
                                      "segment removed"};

class Marks {
 public:
  struct Mark {
    uint32_t event, end, label, stack;
    uint64_t bytes;
    uint8_t kind;
  };
  void add(Kind kind, uint32_t event, uint32_t end, std::string label, uint64_t bytes = 0,
           uint32_t stack = 0) {
    const auto [known, is_new] = known_.try_emplace(std::move(label), labels_.size());
    if (is_new) labels_.push_back(known->first);
    marks_.push_back({event, end, static_cast<uint32_t>(known->second), stack, bytes,
                      static_cast<uint8_t>(kind)});
  }
  std::string finish() {
    std::ranges::stable_sort(marks_, {}, &Mark::event);
    Columns out;
    out.add("kind", marks_, &Mark::kind), out.add("event", marks_, &Mark::event);
    out.add("end", marks_, &Mark::end), out.add("label", marks_, &Mark::label);
    out.add("bytes", marks_, &Mark::bytes), out.add("stack", marks_, &Mark::stack);
    return out.finish({{"labels", labels_},
                       {"kinds", kKindNames},
                       {"out_of_memory", out_of_memory},
                       {"left_out", {{"segments", left_out_segments}}}});
  }
  uint64_t left_out_segments = 0;
  Json out_of_memory = Json::array();

 private:
  std::vector<Mark> marks_;
  absl::flat_hash_map<std::string, size_t> known_;
  Json labels_ = Json::array();
};

void add_told(const PageFile& file, size_t index, Marks* marks) {
  const Tables& tables = file.tables();
  const uint32_t process = tables.devices[file.devices()[index].index].process;
  const auto moment_at = [&](uint64_t time_ns) { return file.moment_at(index, time_ns); };
  std::vector<const CategoryMoment*> open;
  for (const CategoryMoment& moment : file.facts().moments) {
    if (moment.process != process) continue;
    const uint32_t at = moment_at(moment.time_ns);
    if (moment.kind == CategoryMoment::kStepEnd) {
      marks->add(Kind::kStepEnd, at, kNone, "step " + std::to_string(moment.value));
    } else if (moment.kind == CategoryMoment::kPhaseBegin) {
      open.push_back(&moment);
    } else {
      const auto begun = std::find_if(open.rbegin(), open.rend(), [&](const CategoryMoment* other) {
        return other->text == moment.text;
      });
      if (begun == open.rend()) continue;
      marks->add(Kind::kPhase, moment_at((*begun)->time_ns), at,
                 std::string(tables.strings.get(moment.text)));
      open.erase(std::next(begun).base());
    }
  }
  for (const CategoryMoment* moment : open) {
    marks->add(Kind::kPhase, moment_at(moment->time_ns), kNone,
               std::string(tables.strings.get(moment->text)));
  }
}

void add_annotations(const PageFile& file, size_t index, Marks* marks) {
  const uint32_t device = file.devices()[index].index;
  std::vector<const PageAnnotation*> open;
  const auto moment = [&](const PageAnnotation& said) {
    return file.moment_at(index, said.time_ns);
  };
  const auto name = [&](const PageAnnotation& said) {
    return std::string(file.tables().strings.get(said.name));
  };
  for (const PageAnnotation& said : file.facts().annotations) {
    if (said.device != device) continue;
    if (said.is_begin) {
      open.push_back(&said);
      continue;
    }
    const auto begun = std::find_if(open.rbegin(), open.rend(), [&](const PageAnnotation* other) {
      return other->name == said.name;
    });
    if (begun == open.rend()) continue;
    marks->add(Kind::kAnnotation, moment(**begun), moment(said), name(said));
    open.erase(std::next(begun).base());
  }
  for (const PageAnnotation* said : open)
    marks->add(Kind::kAnnotation, moment(*said), kNone, name(*said));
}

void add_segments(const BlockTable& table, Marks* marks) {
  constexpr size_t kMostSegments = 20'000;
  uint64_t least = 0;
  if (table.segments.size() > kMostSegments) {
    std::vector<uint64_t> sizes;
    for (const SegmentChange& change : table.segments) sizes.push_back(change.size_bytes);
    std::ranges::nth_element(sizes, sizes.begin() + kMostSegments, std::greater<uint64_t>());
    least = sizes[kMostSegments] + 1;
  }
  for (const SegmentChange& change : table.segments) {
    if (change.size_bytes < least) {
      ++marks->left_out_segments;
      continue;
    }
    const bool is_added =
        change.action == Action::kSegmentAlloc || change.action == Action::kSegmentMap;
    marks->add(is_added ? Kind::kSegmentAdded : Kind::kSegmentRemoved, change.moment, kNone,
               action_name(change.action), change.size_bytes, change.stack);
  }
}

}  // namespace

PageAnswer marks_answer(PageRequest& request) {
  const size_t index = request.device();
  if (request.is_refused()) return request.refusal();
  PageFile& file = request.file();
  const PageDevice& device = file.devices()[index];
  const BlockTable& table = *device.table;
  Marks marks;
  add_told(file, index, &marks);
  add_annotations(file, index, &marks);
  for (const RefusedMoment& refused : table.refused) {
    marks.add(Kind::kOutOfMemory, refused.moment, kNone, "refused", refused.size_bytes,
              refused.stack);
    marks.out_of_memory.push_back({{"event", refused.moment},
                                   {"requested_bytes", refused.size_bytes},
                                   {"stack", refused.stack}});
  }
  add_segments(table, &marks);
  if (!device.why_unknown_before.empty())
    marks.add(Kind::kUnknownBefore, 0, kNone, device.why_unknown_before);
  return columns_answer(marks.finish());
}

}  // namespace gpumemprof
