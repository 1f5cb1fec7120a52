// The words of a snapshot. They are the first texts that are interned, so that a word's number is
// its id in Texts and a dictionary's keys are compared as numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gpumemprof::torch_snapshot {

/// Keys come first: the keys of a dictionary are gathered in one 64-bit mask.
enum Word : uint32_t {
  kEmptyText = 0,
  // of the whole
  kKeySegments,
  kKeyDeviceTraces,
  kKeyAllocatorSettings,
  kKeyExternalAnnotations,
  kKeyHostSegments,
  kKeyHostTraces,
  kKeyCategories,
  // of segments and blocks
  kKeyDevice,
  kKeyAddress,
  kKeyTotalSize,
  kKeyAllocatedSize,
  kKeyActiveSize,
  kKeyRequestedSize,
  kKeyStream,
  kKeySegmentType,
  kKeySegmentPoolId,
  kKeyIsExpandable,
  kKeyFrames,
  kKeyBlocks,
  kKeySize,
  kKeyState,
  kKeyHistory,
  kKeyAddr,
  kKeyRealSize,
  // of events
  kKeyAction,
  kKeyDeviceFree,
  kKeyTimeUs,
  kKeyCompileContext,
  kKeyUserMetadata,
  kKeyPoolId,
  kKeyForwardFrames,
  kKeyCategory,
  // of frames and annotations
  kKeyFilename,
  kKeyName,
  kKeyLine,
  kKeyFxNodeOp,
  kKeyFxNodeName,
  kKeyFxNodeTarget,
  kKeyFxOriginalTrace,
  kKeyStage,
  // of the settings
  kKeyConf,
  kKeyMaxSplitSize,
  kKeyGarbageCollectionThreshold,
  kKeyExpandableSegments,
  kKeyRoundupPower2Divisions,
  kKeyGraphCaptureRecordStreamReuse,
  kKeyTraceAllocOverflowed,
  kKeyCount,
  // actions
  kWordAlloc = kKeyCount,
  kWordFreeRequested,
  kWordFreeCompleted,
  kWordFree,
  kWordOom,
  kWordSegmentAlloc,
  kWordSegmentFree,
  kWordSegmentMap,
  kWordSegmentUnmap,
  kWordSnapshot,
  kWordAnnotate,
  kWordWorkspaceSnapshot,
  // states, types, stages
  kWordActiveAllocated,
  kWordActivePendingFree,
  kWordActiveAwaitingFree,
  kWordInactive,
  kWordSmall,
  kWordLarge,
  kWordStart,
  kWordEnd,
  kWordNotAvailable,
  kWordCount,
};
static_assert(kKeyCount <= 64);

inline constexpr uint64_t bit(Word key) { return uint64_t{1} << key; }

/// Every word in the order of the enum, the empty text first.
std::span<const std::string_view> all_words();

}  // namespace gpumemprof::torch_snapshot
