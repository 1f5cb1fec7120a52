#include "analysis/replay/settings_text.h"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "allocator/config.h"

namespace gpumemprof {
namespace {

using Setting = std::pair<std::string, std::string>;  // name and what follows its colon

std::vector<Setting> split(std::string_view text) {
  std::vector<Setting> settings;
  std::string item;
  int depth = 0;
  const auto end_item = [&] {
    if (!item.empty()) {
      const size_t colon = std::min(item.find(':'), item.size());
      settings.emplace_back(item.substr(0, colon), item.substr(std::min(colon + 1, item.size())));
    }
    item.clear();
  };
  for (char c : text) {
    if (c == ' ' || c == '\t' || c == '\n') continue;
    if (c == ',' && depth == 0) {
      end_item();
      continue;
    }
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    item += c;
  }
  end_item();
  return settings;
}

std::string join(const std::vector<Setting>& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    if (!text.empty()) text += ',';
    text += name + ':' + value;
  }
  return text;
}

/// `text` without each of its settings in turn that may change where blocks go.
std::vector<std::string> without_one(std::string_view text,
                                     const std::vector<std::string>& without_effect) {
  const std::vector<Setting> settings = split(text);
  std::vector<std::string> out;
  for (size_t i = 0; i < settings.size(); ++i) {
    const std::string& name = settings[i].first;
    if (name == kMemoryFraction ||
        std::ranges::find(without_effect, name) != without_effect.end())
      continue;
    std::vector<Setting> rest = settings;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    out.push_back(join(rest));
  }
  return out;
}

/// Split limits in MB between the sizes of large blocks: a limit keeps blocks above it whole, so
/// only limits with different blocks above them differ.
std::vector<uint64_t> split_limits(const AllocatorTrace& trace, size_t most) {
  constexpr uint64_t kLeastMb = 32;
  absl::btree_map<uint64_t, uint64_t> bytes_by_log2;  // sizes from 2^k MiB to below 2^(k+1)
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    const uint64_t mb = event.size_bytes / kMiB;
    if (event.action == Action::kAlloc && mb >= kLeastMb) {
      bytes_by_log2[std::bit_width(mb) - 1] += event.size_bytes;
    }
  }
  std::vector<std::pair<uint64_t, uint64_t>> by_bytes;
  for (auto [log2, bytes] : bytes_by_log2) by_bytes.emplace_back(bytes, uint64_t{1} << log2);
  std::ranges::sort(by_bytes, std::greater<>());
  if (by_bytes.size() > most) by_bytes.resize(most);
  std::vector<uint64_t> limits;
  for (auto [bytes, mb] : by_bytes) limits.push_back(std::min<uint64_t>(mb, 1u << 20));
  std::ranges::sort(limits, std::greater<>());
  return limits;
}

}  // namespace

std::string merge_settings(std::string_view recorded, std::string_view change) {
  std::vector<Setting> settings = split(recorded);
  for (Setting& wanted : split(change)) {
    auto known = std::ranges::find(settings, wanted.first, &Setting::first);
    if (known == settings.end()) {
      settings.push_back(std::move(wanted));
    } else {
      known->second = std::move(wanted.second);
    }
  }
  return join(settings);
}

std::string recorded_text(const RecordedSettings& settings) {
  if (!settings.conf.empty()) return settings.conf;
  std::vector<Setting> known;
  if (settings.max_split_size_bytes > 0) {
    known.emplace_back("max_split_size_mb",
                       std::to_string(static_cast<uint64_t>(settings.max_split_size_bytes) / kMiB));
  }
  if (settings.garbage_collection_threshold > 0) {
    char digits[32];
    const auto done =
        std::to_chars(digits, digits + sizeof digits, settings.garbage_collection_threshold);
    known.emplace_back("garbage_collection_threshold", std::string(digits, done.ptr));
  }
  if (settings.expandable_segments) known.emplace_back("expandable_segments", "True");
  std::string list;
  for (auto [bucket_mib, divisions] : settings.roundup_power2_divisions) {
    if (divisions == 0) continue;
    list +=
        (list.empty() ? "" : ",") + std::to_string(bucket_mib) + ':' + std::to_string(divisions);
  }
  if (!list.empty()) known.emplace_back("roundup_power2_divisions", '[' + list + ']');
  return join(known);
}

const char* settings_variable(const Release& release) {
  return release.minor >= 10 ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}

std::vector<std::string> candidate_settings(const AllocatorTrace& trace,
                                            const RecordedSettings& settings,
                                            const Release& release,
                                            const CandidateOptions& options) {
  const AllocatorConfig recorded = recorded_config(settings, release);
  const std::string text = recorded_text(settings);
  std::vector<std::string> out;
  const auto add_whole = [&](const std::string& settings) {
    if (settings == text || !parse_settings(settings, release)) return;
    if (out.size() < options.most && std::ranges::find(out, settings) == out.end()) {
      out.push_back(settings);
    }
  };
  const auto add = [&](const std::string& change) { add_whole(merge_settings(text, change)); };
  if (!recorded.expandable_segments) add("expandable_segments:True");
  // What was set may be what costs. A limit of the process stays: it is no choice of the allocator.
  if (!options.has_limit && !text.empty()) {
    add_whole("");
    if (!recorded.expandable_segments) add_whole("expandable_segments:True");
  }
  for (const std::string& rest : without_one(text, recorded.keys_without_effect)) add_whole(rest);
  // PyTorch through 2.4 stops itself where both are set.
  std::vector<uint64_t> limits;
  if (!recorded.expandable_segments || release.minor > 4) limits = split_limits(trace, 6);
  for (uint64_t mb : limits) add("max_split_size_mb:" + std::to_string(mb));
  if (options.has_limit) {
    add("garbage_collection_threshold:0.8");
    add("garbage_collection_threshold:0.6");
  } else if (options.has_capacity) {
    add("garbage_collection_threshold:0.8,per_process_memory_fraction:0.99");
    add("garbage_collection_threshold:0.6,per_process_memory_fraction:0.99");
  }
  for (int divisions : {8, 4, 2}) {
    add("roundup_power2_divisions:" + std::to_string(divisions));
  }
  for (int mb : {64, 128}) add("large_segment_size_mb:" + std::to_string(mb));
  if (!recorded.expandable_segments) {
    add("expandable_segments:True,roundup_power2_divisions:8");
    add("expandable_segments:True,large_segment_size_mb:64");
  } else {
    add("expandable_segments:False");
  }
  for (uint64_t mb : limits) {
    add("max_split_size_mb:" + std::to_string(mb) +
        ",max_non_split_rounding_mb:" + std::to_string(std::max<uint64_t>(mb, 64)));
  }
  return out;
}

}  // namespace gpumemprof
