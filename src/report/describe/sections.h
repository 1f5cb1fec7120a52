// The sections of a report on an analysis, and what they have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "analysis/oom_message/oom_pool.h"
#include "analysis/ranks/job_ranks.h"
#include "analysis/replay/snapshot_device.h"
#include "report/describe/describe.h"
#include "report/describe/source_text.h"
#include "report/document.h"
#include "report/user_code.h"
#include "trace/holder_lines.h"

namespace gpumemprof {

/// The input shared by all sections of a report.
class Subject {
 public:
  Subject(const Analysis& analysis, const Tables& tables, const DescribeOptions& options);

  const Analysis& analysis;
  const Tables& tables;
  const DescribeOptions& options;

  std::string line_text(uint32_t node) const {
    return headline_text(tables, node, options.working_folder);
  }
  /// Source text of that line; empty if it is not to be shown or not available.
  std::string source_of(uint32_t node) const;
  /// The same; for memory without a stack, the reason and its types.
  std::string note_of(uint32_t node, const DeviceAnalysis& device) const;

 private:
  std::shared_ptr<SourceText> source_;  // null: not to be shown
};

Section peak_section(const Subject& subject, std::string_view nothing);

// Each without parts where there is nothing to say.
Section findings_section(const Subject& subject);
/// That of a finding.
Tone tone_of(Severity severity);
Section advice_section(const AdviceReport& report);
/// Said before the first choice that follows what is wasted.
inline constexpr const char* kChoicesFollow =
    "Choices that have a price; they save at most these bytes:";
/// The basis of a saving, one sentence without a full stop.
std::string saving_words(const Advice& one);
/// "4.00 MiB"; "time" where no memory is saved.
std::string saving_label(const Advice& one);
/// The title, to stand beside the bytes of the saving: those are not said again.
std::string title_beside_bytes(const Advice& one);
/// Measured and without effect: shown, so that nobody tries it again, but not counted.
bool was_measured_for_nothing(const Advice& one);
Section categories_section(const Subject& subject, const DeviceAnalysis& device);
/// The modules that ran under a line of the program, where these are several: its first `most`.
Table modules_table(const Subject& subject, const DeviceAnalysis& device, const HolderLine& line,
                    size_t most);
Section lines_section(const Subject& subject, const DeviceAnalysis& device);
/// Of other devices and processes, the highest peak first.
std::vector<Section> other_device_sections(const Subject& subject, const DeviceAnalysis* main);
/// What TensorFlow's layers held at the peak, the first `most` rows of it in the columns of
/// share_table(); no rows unless graphs allocated more than half of the peak in known layers: else
/// lines of code say more.
Table layers_table(const Subject& subject, const DeviceAnalysis& device, size_t most);
Section layers_section(const Subject& subject, const DeviceAnalysis& device);
Section temporaries_section(const Subject& subject, const DeviceAnalysis& device);
/// One for each refused request of the device.
std::vector<Section> refusal_sections(const Subject& subject, const DeviceAnalysis& device);
Section fragmentation_section(const Subject& subject, const DeviceAnalysis& device);
Section pool_section(const BfcPool& pool);
/// One for each device and host with driver samples.
std::vector<Section> driver_sections(const Subject& subject);
Section machine_section(const Subject& subject);
/// One for each `run` whose samples tell of the host's memory.
std::vector<Section> host_sections(const Subject& subject);
/// Of a job's ranks, side by side.
Section ranks_section(const Subject& subject);
Section devices_section(const Subject& subject);
Section processes_section(const Subject& subject);
Section threads_section(const Subject& subject);
Section losses_section(const Subject& subject);

/// Every frame of `stack`; paths below `folder` are short relative to it.
Stack stack_of(const Tables& tables, uint32_t stack, std::string_view folder);

/// Terms of a sum, each with its bytes and, where there is one, a remark; deeper: of the one above.
Table terms_table();
Row term_row(size_t depth, std::string name, std::string value, std::string remark = "");

/// Columns of bytes, of their share of the peak, and of what they are.
Table share_table(std::string noun);
Row share_row(uint64_t bytes, uint64_t total, TableCell cell);

/// Rows of `all` up to `most`; the rest is counted in the table.
template <class Each, class Make>
void add_rows(const std::vector<Each>& all, size_t most, Table* table, Make make) {
  const size_t shown = std::min(most, all.size());
  for (size_t i = 0; i < shown; ++i) table->rows.push_back(make(all[i]));
  table->left_out = all.size() - shown;
}

// What reports say of a job's ranks first.

/// Of ranks that are missing or did not end by themselves with 0, a sentence each.
std::vector<std::string> rank_failures(const JobRanks& job,
                                       std::optional<uint32_t> told_rank = std::nullopt);

/// "Rank 2 is 30.5 MiB above the median of 4 ranks, …", and the line that makes the most of it.
/// Empty where there is nothing to compare.
std::string median_sentence(const Subject& subject, const JobRanks& job);

/// Nothing where no view shows it: of an allocator's state that has no events.
std::optional<EvidencePlace> evidence_of(const Finding& finding, const Analysis& analysis);
std::optional<EvidencePlace> evidence_of(const Advice& advice);

/// Of the blocks of one line, or of all, at the peak. Nothing for a sum of several allocators:
/// the page has each by itself.
std::optional<EvidencePlace> evidence_at_peak(const DeviceAnalysis& device,
                                         std::vector<uint32_t> lines = {});

// What TensorFlow's memory was for, as rows of a report: layers and parts of their work.

/// The memory of what reads the same.
struct WorkRow {
  std::string part;   ///< LayerWork::part
  std::string mode;   ///< empty where rows are not told apart by it
  std::string where;  ///< the layer, "XLA cluster f" or "call of f"; empty: none is known
  bool has_layer;
  uint64_t bytes;
  uint64_t graph_bytes;  ///< of them, what a graph's operations allocated
  uint64_t count;
  /// "optimizer adam", "framework's own (not in a layer)".
  std::string text() const;
};
enum class WorkRows { kByPart, kByPartAndMode };
/// Largest first; they add up to `holders`.
std::vector<WorkRow> work_rows(const std::vector<Holder>& holders, const Tables& tables,
                               WorkRows by);

inline constexpr const char* kNotInALayer = "(not in a layer)";

}  // namespace gpumemprof
