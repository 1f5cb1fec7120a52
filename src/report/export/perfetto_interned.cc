#include "report/export/perfetto_interned.h"

#include <protozero/pbf_writer.hpp>
#include <vector>

#include "report/export/perfetto_fields.h"
#include "report/export/stack_exports.h"
#include "report/words.h"

namespace gpumemprof {

namespace field = perfetto::interned;

uint64_t PerfettoInterned::text(absl::flat_hash_map<std::string, uint64_t>& known, uint32_t tag,
                                const std::string& text) {
  auto [at, added] = known.try_emplace(text, known.size() + 1);
  if (added) {
    protozero::pbf_writer data(pending_);
    protozero::pbf_writer message(data, tag);
    message.add_uint64(field::kIid, at->second);
    message.add_bytes(field::kStr, text);
  }
  return at->second;
}

/// A viewer shows a frame's file as the binary that it was mapped from.
uint64_t PerfettoInterned::mapping(const std::string& file) {
  auto [at, added] = mappings_.try_emplace(file, mappings_.size() + 1);
  if (!added) return at->second;
  const uint64_t id = at->second;
  const uint64_t path = text(paths_, field::kMappingPaths, file);
  protozero::pbf_writer data(pending_);
  protozero::pbf_writer message(data, field::kMappings);
  message.add_uint64(field::kIid, id);
  message.add_uint64(field::kPathStringIds, path);
  return id;
}

uint64_t PerfettoInterned::frame(uint32_t frame_id) {
  const uint64_t iid = uint64_t{frame_id} + 1;
  if (!frames_.try_emplace(frame_id, true).second) return iid;
  const Frame& frame = tables_.stacks.frame(frame_id);
  const std::string file = printable(tables_.strings.get(frame.file));
  const std::string name = frame_id == 0 ? std::string(kNoStack) : viewer_frame(tables_, frame);
  const uint64_t name_id = text(functions_, field::kFunctionNames, name);
  const uint64_t source_id = text(sources_, field::kSourcePaths, file);
  const uint64_t mapping_id = mapping(file);
  protozero::pbf_writer data(pending_);
  protozero::pbf_writer message(data, field::kFrames);
  message.add_uint64(field::kIid, iid);
  message.add_uint64(field::kFunctionNameId, name_id);
  message.add_uint64(field::kMappingId, mapping_id);
  message.add_uint64(field::kSourcePathIid, source_id);
  if (frame.line != 0) message.add_uint32(field::kLineNumber, frame.line);
  return iid;
}

uint64_t PerfettoInterned::stack(uint32_t stack) {
  const uint64_t iid = uint64_t{stack} + 1;
  if (!stacks_.try_emplace(stack, true).second) return iid;
  std::vector<uint64_t> path;  // the outermost frame first
  for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent) {
    path.push_back(frame(tables_.stacks.node(node).frame));
  }
  if (path.empty()) path.push_back(frame(0));
  protozero::pbf_writer data(pending_);
  protozero::pbf_writer message(data, field::kCallstacks);
  message.add_uint64(field::kIid, iid);
  for (size_t i = path.size(); i-- > 0;) message.add_uint64(field::kFrameIds, path[i]);
  return iid;
}

}  // namespace gpumemprof
