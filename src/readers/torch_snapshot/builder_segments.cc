// Builder: segments, settings, and the dictionary around everything.
#include <charconv>

#include "readers/torch_snapshot/builder.h"

namespace gpumemprof::torch_snapshot {

Value Builder::segment(const Value* items, size_t count, uint64_t at) {
  SegmentRecord record;
  AllocatorSegment& segment = record.segment;
  const auto set = [&](const Value& key, const Value& value) -> const char* {
    switch (key.bits) {
      case kKeyDevice:
        if (const char* expected = to_signed(value, &record.device)) return expected;
        return record.device < -1 || record.device > INT8_MAX ? "the number of a device" : nullptr;
      case kKeyAddress:
        return to_address(value, &segment.address);
      case kKeyTotalSize:
        return to_size(value, &segment.size_bytes);
      case kKeyAllocatedSize:
        return to_size(value, &segment.allocated_bytes);
      case kKeyActiveSize:
        return to_size(value, &segment.active_bytes);
      case kKeyRequestedSize:
        return to_size(value, &segment.requested_bytes);
      case kKeyStream:
        return to_signed(value, &record.stream);
      case kKeySegmentType:
        if (value.kind != Kind::kText || (value.bits != kWordSmall && value.bits != kWordLarge))
          return "small or large";
        segment.is_large = value.bits == kWordLarge;
        return nullptr;
      case kKeySegmentPoolId:
        return to_pair(value, &record.pool);
      case kKeyIsExpandable:
        return to_bool(value, &segment.is_expandable);
      case kKeyFrames:
        return to_stack(value, &segment.stack);
      case kKeyBlocks:
        if (value.kind == Kind::kBlocks)
          segment.blocks = std::move(parts_.block_lists[value.bits]);
        else if (value.kind != Kind::kEmptyList)
          return "a list of blocks";
        return nullptr;
      default:
        unread_key(key);
        return nullptr;
    }
  };
  if (const auto wrong = set_fields("a segment", items, count, at, set)) return *wrong;
  parts_.segments.push_back(std::move(record));
  return {Kind::kSegment, 0, parts_.segments.size() - 1};
}

Value Builder::settings(const Value* items, size_t count, uint64_t at) {
  RecordedSettings settings;
  settings.known = true;
  const auto set = [&](const Value& key, const Value& value) -> const char* {
    switch (key.bits) {
      case kKeyConf:
        if (value.kind != Kind::kText) return "a text";
        settings.conf = texts_.get(static_cast<uint32_t>(value.bits));
        return nullptr;
      case kKeyMaxSplitSize:
        return to_signed(value, &settings.max_split_size_bytes);
      case kKeyGarbageCollectionThreshold:
        if (value.kind == Kind::kReal)
          settings.garbage_collection_threshold = __builtin_bit_cast(double, value.bits);
        else if (value.kind == Kind::kInteger)
          settings.garbage_collection_threshold =
              static_cast<double>(static_cast<int64_t>(value.bits));
        else
          return "a fraction";
        return nullptr;
      case kKeyExpandableSegments:
        return to_bool(value, &settings.expandable_segments);
      case kKeyRoundupPower2Divisions:
        if (value.kind != Kind::kNumbers)
          return value.kind != Kind::kEmptyDict ? "a dictionary of numbers" : nullptr;
        for (const auto& [name, divisions] : parts_.number_maps[value.bits]) {
          const std::string_view text = texts_.get(name);
          uint64_t bucket_mib = 0;
          const auto parsed = std::from_chars(text.data(), text.data() + text.size(), bucket_mib);
          if (parsed.ptr != text.data() + text.size() || parsed.ec != std::errc() || divisions < 0)
            return "a dictionary from MiB to divisions";
          settings.roundup_power2_divisions.push_back(
              {bucket_mib, static_cast<uint64_t>(divisions)});
        }
        return nullptr;
      case kKeyTraceAllocOverflowed: {
        bool overflowed = false;
        if (to_bool(value, &overflowed)) {
          parts_.unread_layouts.push_back("trace_alloc_overflowed");
        }
        parts_.ring_overflowed |= overflowed;
        return nullptr;
      }
      default:  // what does not bear on where blocks are placed
        return nullptr;
    }
  };
  if (const auto wrong = set_fields("allocator_settings", items, count, at, set)) return *wrong;
  if (!grow(256 + settings.conf.size())) return {};
  parts_.settings.push_back(std::move(settings));
  return {Kind::kSettings, 0, parts_.settings.size() - 1};
}

Value Builder::snapshot(const Value* items, size_t count, uint64_t at) {
  SnapshotRecord record;
  for (size_t i = 0; i < count; i += 2) {
    const Value& key = items[i];
    const Value& value = items[i + 1];
    if (key.kind != Kind::kText) continue;
    if (key.bits < kKeyCount) record.keys |= uint64_t{1} << key.bits;
    const bool is_empty = value.kind == Kind::kEmptyList || value.kind == Kind::kEmptyDict ||
                          value.kind == Kind::kNone;
    uint32_t* part = nullptr;
    Kind kind = Kind::kNone;
    const char* expected = nullptr;
    bool is_required = true, is_host = false;
    switch (key.bits) {
      case kKeySegments:
        part = &record.segments, kind = Kind::kSegments, expected = "a list of segments";
        break;
      case kKeyDeviceTraces:
        part = &record.traces, kind = Kind::kTraces, expected = "a list of lists of events";
        break;
      case kKeyAllocatorSettings:
        part = &record.settings, kind = Kind::kSettings, expected = "a dictionary of settings";
        is_required = false;
        break;
      case kKeyExternalAnnotations:
        part = &record.annotations, kind = Kind::kAnnotations, expected = "a list of annotations";
        is_required = false;
        break;
      case kKeyHostSegments:
        part = &record.host_segments, kind = Kind::kSegments, is_host = true;
        break;
      case kKeyHostTraces:
        part = &record.host_traces, is_host = true;
        kind = value.kind == Kind::kTrace ? Kind::kTrace : Kind::kTraces;
        break;
      default:
        unread_key(key);
        continue;
    }
    if (value.kind == kind) {
      *part = static_cast<uint32_t>(value.bits);
      if (kind == Kind::kTrace) {  // a flat list: that of one device
        *part = static_cast<uint32_t>(parts_.trace_lists.size());
        parts_.trace_lists.push_back({static_cast<uint32_t>(value.bits)});
      }
    } else if (!is_empty) {
      if (!is_host && (is_required || value.kind == Kind::kWrong))
        return wrong_field("the snapshot", key, value, expected, at);
      parts_.unread_layouts.emplace_back(texts_.get(static_cast<uint32_t>(key.bits)));
    }
  }
  if (!grow(4 * sizeof record)) return {};
  parts_.snapshots.push_back(record);
  return {Kind::kSnapshot, 0, parts_.snapshots.size() - 1};
}

}  // namespace gpumemprof::torch_snapshot
