#include "report/describe/sections.h"

#include <algorithm>

#include "analysis/finding_figure.h"
#include "analysis/replay/snapshot_device.h"

namespace gpumemprof {
namespace {

using View = EvidencePlace::View;
using When = EvidencePlace::When;

std::optional<uint64_t> figure(const Finding& finding, std::string_view name) {
  const uint64_t* found = find_figure(finding, name);
  return found ? std::optional(*found) : std::nullopt;
}

/// Which of the device's refusals a finding is about.
std::optional<uint64_t> refusal_of(const Finding& finding, const DeviceAnalysis& device) {
  if (!device.snapshot) {
    const auto own = std::ranges::find_if(device.refusals, [&](const Refusal& one) {
      return figure(finding, "event_index") == one.event;
    });
    if (own == device.refusals.end()) return std::nullopt;
    return own->number;
  }
  const auto& all = device.snapshot->ooms;
  const auto own = std::ranges::find_if(all, [&](const OomExplanation& oom) {
    return figure(finding, "event_index") == oom.event;
  });
  if (own == all.end()) return std::nullopt;
  return own->number;
}

EvidencePlace event_of(const DeviceAnalysis& device, std::optional<uint64_t> event) {
  EvidencePlace out{.view = View::kAddressSpace, .device = device.device};
  // A recording's history has numbers of its own.
  const bool is_page_event = event && device.snapshot && !device.snapshot->is_recorded;
  if (is_page_event) out.when = When::kEvent, out.number = *event;
  return out;
}

}  // namespace

std::optional<EvidencePlace> evidence_at_peak(const DeviceAnalysis& device,
                                         std::vector<uint32_t> lines) {
  if (!device.parts.empty()) return std::nullopt;
  return EvidencePlace{.device = device.device, .lines = std::move(lines)};
}

std::optional<EvidencePlace> evidence_of(const Finding& finding, const Analysis& analysis) {
  const DeviceAnalysis* device = find_device(analysis, finding.device);
  if (!device || device->pool) return std::nullopt;
  if (is_refusal(finding)) {
    const auto refusal = refusal_of(finding, *device);
    if (!refusal) return std::nullopt;
    return EvidencePlace{.view = device->snapshot ? View::kAddressSpace : View::kHolders,
                    .when = When::kRefusal,
                    .device = finding.device,
                    .number = *refusal};
  }
  constexpr FindingKind kNowhere[] = {FindingKind::kInconsistentTrace, FindingKind::kPinnedRounding,
                                      FindingKind::kPinnedCacheGrowth,
                                      FindingKind::kNcclCommunicators};
  if (std::ranges::find(kNowhere, finding.kind) != std::end(kNowhere)) return std::nullopt;
  if (finding.kind == FindingKind::kReplayMismatch)
    return event_of(*device, figure(finding, "first_mismatch_event"));
  if (finding.kind == FindingKind::kCacheSlack) return event_of(*device, figure(finding, "first_event"));
  if (finding.kind == FindingKind::kStrandedStreamCache ||
      finding.kind == FindingKind::kFragmentation)  // without that figure it is of the peak
    return event_of(*device, figure(finding, "event_index"));
  constexpr FindingKind kAtPeak[] = {FindingKind::kRounding, FindingKind::kGraphPoolSlack,
                                     FindingKind::kRecordStreamPending,
                                     FindingKind::kSettingsConflict};
  if (std::ranges::find(kAtPeak, finding.kind) != std::end(kAtPeak))
    return event_of(*device, std::nullopt);
  // Swings are all of the run: no one moment shows them better than another.
  if (finding.kind == FindingKind::kSawtooth) return std::nullopt;
  if (finding.kind == FindingKind::kSpike) {
    auto place = evidence_at_peak(*device);
    const auto highest = figure(finding, "highest_bytes");
    if (place && highest) place->when = When::kLevel, place->number = *highest;
    return place;
  }
  // What grows is what the run leaves behind.
  EvidencePlace out{.when = When::kLeft, .device = finding.device};
  for (const FindingLine& line : finding.lines) out.lines.push_back(line.stack);
  if (out.lines.empty() && finding.stack != 0) out.lines.push_back(finding.stack);
  return out;
}

std::optional<EvidencePlace> evidence_of(const Advice& advice) {
  EvidencePlace out{.device = advice.device};
  if (advice.kind == "allocator" && advice.basis != SavingBasis::kTime) {
    out.view = View::kWhatIf;
    return out;
  }
  out.module = advice.modules.substr(0, advice.modules.find_first_of("*,"));
  while (out.module.ends_with('.')) out.module.pop_back();
  if (out.module.empty() && advice.stack != 0) out.lines.push_back(advice.stack);
  return out;
}

}  // namespace gpumemprof
