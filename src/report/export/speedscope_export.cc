
#include "report/describe/facts.h"
#include "report/export/stack_exports.h"
#include "report/words.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

struct Profile {
  std::string_view name;
  const std::vector<Holder>* holders;
};

std::string head(std::string_view title, std::string_view version) {
  std::string text =
      "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":";
  append_json_string(&text, "gpumemprof " + std::string(version));
  text += ",\"name\":";
  append_json_string(&text, title);
  return text += ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[";
}

std::string profile_head(std::string_view name, uint64_t sum) {
  std::string text = "{\"type\":\"sampled\",\"name\":";
  append_json_string(&text, name);
  text += ",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":" + std::to_string(sum);
  return text += ",\"samples\":[";
}

/// Writes the file front to back; the first error of the sink ends it.
class SpeedscopeWriter {
 public:
  SpeedscopeWriter(std::vector<Profile> profiles, const Tables& tables, const TextSink& sink)
      : profiles_(std::move(profiles)), tables_(tables), sink_(sink) {}

  Status write(std::string_view title, std::string_view version) {
    text_ = head(title, version);
    write_frames();
    text_ += "]},\"profiles\":[";
    for (const Profile& profile : profiles_) {
      if (&profile != profiles_.data()) text_ += ',';
      write_profile(profile);
    }
    text_ += "]}\n";
    flush(0);
    return status_;
  }

 private:
  static constexpr uint32_t kUnset = UINT32_MAX;

  void flush(size_t least) {
    if (text_.size() < least || !status_) return;
    status_ = sink_(text_);
    text_.clear();
  }

  /// Only the frames that are in a profile, numbered as they come; number 0 is the unknown.
  void write_frames() {
    text_ += "{\"name\":";
    append_json_string(&text_, kNoStack);
    text_ += '}';
    uint32_t next = 1;
    numbers_.assign(tables_.stacks.frame_count(), kUnset);
    std::vector<bool> seen(tables_.stacks.stack_count(), false);
    for (const Profile& profile : profiles_) {
      for (const Holder& holder : *profile.holders) {
        for (uint32_t node = holder.stack; node != 0 && node < seen.size() && !seen[node];
             node = tables_.stacks.node(node).parent) {
          seen[node] = true;
          uint32_t& number = numbers_[tables_.stacks.node(node).frame];
          if (number != kUnset) continue;
          number = next++;
          write_frame(tables_.stacks.frame_of(node));
          flush(kFlushBytes);
        }
      }
    }
  }

  void write_frame(const Frame& frame) {
    text_ += ",{\"name\":";
    append_json_string(&text_, tables_.strings.get(frame.function));
    if (frame.file != 0) {
      text_ += ",\"file\":";
      append_json_string(&text_, tables_.strings.get(frame.file));
    }
    if (frame.line != 0) text_ += ",\"line\":" + std::to_string(frame.line);
    text_ += '}';
  }

  void write_profile(const Profile& profile) {
    const std::vector<Holder>& holders = *profile.holders;
    uint64_t sum = 0;
    for (const Holder& holder : holders) sum += holder.bytes;
    text_ += profile_head(profile.name, sum);
    for (size_t i = 0; i < holders.size(); ++i) {
      if (i != 0) text_ += ',';
      write_sample(holders[i].stack);
      flush(kFlushBytes);
    }
    text_ += "],\"weights\":[";
    for (size_t i = 0; i < holders.size(); ++i) {
      if (i != 0) text_ += ',';
      text_ += std::to_string(holders[i].bytes);
    }
    text_ += "]}";
    flush(kFlushBytes);
  }

  /// The outermost frame first.
  void write_sample(uint32_t stack) {
    path_.clear();
    for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent) {
      const uint32_t frame = tables_.stacks.node(node).frame;
      path_.push_back(frame < numbers_.size() && numbers_[frame] != kUnset ? numbers_[frame] : 0);
    }
    if (path_.empty()) path_.push_back(0);
    text_ += '[';
    for (size_t i = path_.size(); i-- > 0;) {
      text_ += std::to_string(path_[i]);
      if (i != 0) text_ += ',';
    }
    text_ += ']';
  }

  const std::vector<Profile> profiles_;
  const Tables& tables_;
  const TextSink& sink_;
  std::string text_;
  Status status_;
  std::vector<uint32_t> numbers_;  // by frame id
  std::vector<uint32_t> path_;
};

}  // namespace

Status export_speedscope(const Analysis& analysis, const DeviceAnalysis& device,
                         const Tables& tables, std::string_view version, const TextSink& sink) {
  std::vector<Holder> totals = device.totals;
  std::ranges::sort(totals, comes_first);
  return SpeedscopeWriter({{"live at the peak", &device.holders_at_peak},
                           {"live at the end", &device.holders_at_end},
                           {"allocated over the whole run", &totals}},
                          tables, sink)
      .write(peak_sentence(analysis, tables, device), version);
}

Status export_speedscope(std::string_view title, std::string_view name,
                         const std::vector<Holder>& holders, const Tables& tables,
                         std::string_view version, const TextSink& sink) {
  return SpeedscopeWriter({{name, &holders}}, tables, sink).write(title, version);
}

Status export_speedscope_paths(std::string_view title, std::string_view name,
                               const FlamePaths& paths, std::string_view version,
                               const TextSink& sink) {
  std::string text = head(title, version);
  for (uint32_t i = 0; i < paths.names.size(); ++i) {  // a frame's number is the name's id
    text += i == 0 ? "{\"name\":" : ",{\"name\":";
    append_json_string(&text, paths.names.get(i));
    text += '}';
  }
  text += "]},\"profiles\":[" + profile_head(name, paths.total_bytes);
  std::string weights;
  for (const FlamePath& path : paths.paths) {
    const bool is_first = &path == paths.paths.data();
    text += is_first ? "[" : ",[";
    for (size_t i = 0; i < path.frames.size(); ++i) {
      (text += i == 0 ? "" : ",") += std::to_string(path.frames[i]);
    }
    text += ']';
    (weights += is_first ? "" : ",") += std::to_string(path.bytes);
  }
  return sink(text + "],\"weights\":[" + weights + "]}]}\n");
}

}  // namespace gpumemprof
