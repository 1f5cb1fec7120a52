#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/size.h"
#include "report/estimate_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostParts = 20;
constexpr size_t kEstimateWidth = 100;

std::string peaks_row(const char* name, const std::optional<PredictedBytes>& peak, const char* is) {
  if (!peak) return fmt::format("  {:<9}  {:>9}  {:>9}  {:>9}  {}", name, "unknown", "", "", is);
  return fmt::format("  {:<9}  {:>9}  {:>9}  {:>9}  {}", name, format_bytes(peak->expected),
                     format_bytes(peak->low), format_bytes(peak->high), is);
}

class EstimateWriter {
 public:
  EstimateWriter(const EstimateAnswer& answer, size_t columns)
      : answer_(answer),
        prediction_(answer.prediction),
        width_(columns == 0 ? kEstimateWidth : std::min(columns, kEstimateWidth)) {}

  std::string write() {
    write_head();
    write_parts();
    write_table();
    write_fit();
    write_list("Assumed:", assumption_lines());
    write_list("Not known:", prediction_.unknown);
    return std::move(out_);
  }

 private:
  void line(std::string_view text) { (out_ += text) += '\n'; }

  void write_head() {
    line(printable(answer_.subject) +
         (answer_.setup.empty() ? "" : ": " + printable(answer_.setup)));
    std::string how = fmt::format("By {}", method_words(prediction_.method).words);
    if (prediction_.batch != 0)
      how += fmt::format(", batch {} per device", format_count(prediction_.batch));
    line(how + '.');
    if (answer_.largest_batch) write_largest_batch(*answer_.largest_batch);
    line("");
    line(fmt::format("  {:<9}  {:>9}  {:>9}  {:>9}", "peak", "expected", "low", "high"));
    line(peaks_row("live", prediction_.live, "sum of live tensors"));
    line(peaks_row("allocated", prediction_.allocated, "torch.cuda.max_memory_allocated()"));
    line(peaks_row("reserved", prediction_.reserved, "torch.cuda.max_memory_reserved()"));
    line(peaks_row("device", prediction_.device, "nvidia-smi's figure for the process"));
  }

  void write_largest_batch(const LargestBatch& largest) {
    const std::string capacity = format_bytes(largest.capacity_bytes);
    const std::string limit = fmt::format("{}, using the {}", capacity,
                                          largest.by_upper_end ? "upper end" : "expected figure");
    if (largest.batch != 0) {
      line(fmt::format("The largest batch that fits {}: {}.", limit, format_count(largest.batch)));
    } else if (fits(bytes_that_must_fit(prediction_), largest.capacity_bytes) ==
               FitVerdict::kMayFit) {
      line(fmt::format("Batch 1 may fit {}; the figures are for batch 1.", capacity));
    } else {
      line(fmt::format("Batch 1 does not fit {}; the figures are for batch 1.", limit));
    }
  }

  void write_parts() {
    if (prediction_.at_peak.empty()) return;
    uint64_t total = 0;
    std::map<Category, uint64_t> by_category;
    for (const PredictedShare& share : prediction_.at_peak) {
      total += share.bytes;
      by_category[share.category] += share.bytes;
    }
    std::vector<std::pair<Category, uint64_t>> order(by_category.begin(), by_category.end());
    std::ranges::stable_sort(order, std::greater<>(), &std::pair<Category, uint64_t>::second);
    line("");
    line(fmt::format("Memory at the peak, by type ({}):", format_bytes(total)));
    for (const auto& [category, bytes] : order) {
      line(fmt::format("  {:>9}  {:>6}  {}", format_bytes(bytes), format_percent(bytes, total),
                       category_name(category)));
    }
    line("By part:");
    const size_t shown = std::min(kMostParts, prediction_.at_peak.size());
    for (size_t i = 0; i < shown; ++i) {
      const PredictedShare& share = prediction_.at_peak[i];
      line(fmt::format("  {:>9}  {:>6}  {} ({})", format_bytes(share.bytes),
                       format_percent(share.bytes, total), printable(share.name),
                       category_name(share.category)));
    }
    if (prediction_.at_peak.size() > shown) {
      line(fmt::format("  and {} more", format_count(prediction_.at_peak.size() - shown)));
    }
  }

  void write_table() {
    if (answer_.table.empty()) return;
    line("");
    line("Other settings, expected peaks:");
    line(fmt::format("  {:>9}  {:>9}  {:>9}  settings", "allocated", "reserved", "device"));
    const auto cell = [](const std::optional<PredictedBytes>& peak) {
      return peak ? format_bytes(peak->expected) : std::string("unknown");
    };
    for (const PredictionRow& row : answer_.table) {
      const Prediction& p = row.prediction;
      const bool is_own =  // not the method's, which is printed once, below
          !p.device && !p.unknown.empty() &&
          std::ranges::find(prediction_.unknown, p.unknown.back()) == prediction_.unknown.end();
      const std::string reason = is_own ? ": " + printable(p.unknown.back()) : "";
      line(fmt::format("  {:>9}  {:>9}  {:>9}  {}{}", cell(p.allocated), cell(p.reserved),
                       cell(p.device), printable(row.settings), reason));
    }
  }

  void write_fit() {
    const auto need = bytes_that_must_fit(prediction_);
    if (answer_.capacity_bytes) {
      line("");
      line(fmt::format("With {} for the process: {}.", format_bytes(*answer_.capacity_bytes),
                       verdict_name(fits(need, *answer_.capacity_bytes))));
    }
    if (!answer_.boards.empty()) {
      line("");
      line("Does it fit on an otherwise empty GPU:");
      for (const BoardFit& fit : answer_.boards) {
        line(fmt::format("  {:<12}  {:>9}  {}", verdict_name(fit.verdict),
                         format_bytes(fit.board.usable_bytes), printable(fit.board.name)));
      }
    }
    if (answer_.cheapest) {
      line(fmt::format("Cheapest board of your price list that fits: {}, {:.2f} {} an hour.",
                       printable(answer_.cheapest->board), answer_.cheapest->price_per_hour,
                       printable(answer_.cheapest->currency)));
    } else if (answer_.prices_given) {
      line("No board of your price list is certain to be large enough.");
    }
  }

  std::vector<std::string> assumption_lines() const {
    std::vector<std::string> lines;
    for (const Assumption& assumption : prediction_.assumptions) {
      lines.push_back(assumption.source.empty()
                          ? assumption.what
                          : fmt::format("{} ({})", assumption.what, assumption.source));
    }
    return lines;
  }

  void write_list(const char* title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    line("");
    line(title);
    for (const std::string& item : items) {
      const char* mark = "- ";
      for (const std::string& part : wrapped(printable(item), width_ - 4)) {
        line(fmt::format("  {}{}", mark, part));
        mark = "  ";
      }
    }
  }

  const EstimateAnswer& answer_;
  const Prediction& prediction_;
  const size_t width_;
  std::string out_;
};

}  // namespace

MethodWords method_words(EstimateMethod method) {
  static constexpr MethodWords kWords[] = {
      {"trace_of_script", "two steps of the script, traced without a GPU"},
      {"trace_of_model",
       "two steps of the model in a plain training loop, traced without a GPU"},
      {"trace_on_host", "two steps of the script on the CPU at a small batch"},
      {"closed_form", "arithmetic over the configuration; nothing was run"}};
  return kWords[static_cast<size_t>(method)];
}

std::string estimate_text(const EstimateAnswer& answer, size_t columns) {
  return EstimateWriter(answer, columns).write();
}

}  // namespace gpumemprof
