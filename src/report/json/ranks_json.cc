#include "report/json/sections.h"

#include "analysis/ranks/job_ranks.h"
#include "report/json/parts.h"
#include "report/user_code.h"
#include "report/words.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// In the order of RankEnd.
constexpr const char* kEndNames[] = {"exited", "exit_code", "signal", "out_of_memory", "unknown"};

const char* aligned_name(MachineClock::Aligned by) {
  return by == MachineClock::Aligned::kIsTheirs      ? "reference"
         : by == MachineClock::Aligned::kCollectives ? "collectives"
                                                     : "wall_clock";
}

Json rank_json(const OneRank& rank, const JobRanks& job, const Tables& tables) {
  const Process& process = process_at(tables, rank.process);
  const auto known = [&](bool is_known, uint64_t value) { return is_known ? Json(value) : Json(); };
  return {{"rank", rank.rank},
          {"local_rank", or_null(process.place.local_rank)},
          {"node", or_null(process.place.node)},
          {"host", process.host},
          {"pid", process.pid},
          {"process_index", rank.process},
          {"clock", process.clock},
          {"device", rank.device ? Json(device_name(device_at(tables, *rank.device))) : Json()},
          {"peak_bytes", known(rank.device.has_value(), rank.peak_bytes)},
          {"peak_time_ns", known(rank.device.has_value(), rank.peak_time_ns)},
          {"at_job_peak_bytes", known(job.job_peak_bytes.has_value(), rank.at_job_peak_bytes)},
          {"parameters", rank.parameters},
          {"parameter_bytes", known(rank.parameters != 0, rank.parameter_bytes)},
          {"steps", rank.steps},
          {"step_ns", or_null(rank.step_ns)},
          {"lag_ns", or_null(rank.lag_ns)},
          {"last_in_collectives", rank.last_in},
          {"waited_for_ns", rank.waited_for_ns},
          {"end", kEndNames[static_cast<size_t>(rank.end)]},
          {"exit_code", rank.end == RankEnd::kExitCode ? Json(rank.exit_code) : Json()},
          {"signal", text_or_null(rank.signal)},
          {"tries", rank.tries},
          {"processes", rank.processes}};
}

Json line_json(uint32_t node, const Tables& tables) {
  return node == 0 ? Json() : Json(frame_text(tables, node));
}

}  // namespace

Json ranks_json(const Analysis& analysis, const Tables& tables) {
  if (!analysis.ranks) return nullptr;
  const JobRanks& job = *analysis.ranks;
  Json ranks = Json::array(), lines = Json::array(), clocks = Json::array();
  Json stragglers = Json::array(), divided = Json::array();
  for (const OneRank& rank : job.ranks) ranks.push_back(rank_json(rank, job, tables));
  for (const RankLine& line : job.lines) {
    lines.push_back({{"line", line_json(line.node, tables)},
                     {"bytes", line.bytes},
                     {"median_bytes", line.median_bytes}});
  }
  for (const MachineClock& clock : tables.clocks) {
    clocks.push_back({{"aligned_by", aligned_name(clock.by)},
                      {"shift_ns", clock.shift_ns},
                      {"error_ns", or_null(clock.error_ns)},
                      {"collectives", clock.collectives},
                      {"drifts", clock.drifts}});
  }
  for (const Straggler& one : job.stragglers)
    stragglers.push_back({{"rank", one.rank}, {"evidence", one.evidence}});
  for (const Parallelism& one : job.parallelism)
    divided.push_back({{"kind", one.kind}, {"evidence", one.evidence}});
  Json refusal = nullptr;
  if (const auto& one = job.first_refusal) {
    refusal = {{"rank", one->rank},
               {"device", device_name(device_at(tables, one->device))},
               {"requested_bytes", one->size_bytes},
               {"line", line_json(headline_node(tables, one->stack), tables)},
               {"ended_it", one->ended_it},
               {"ranks", one->ranks}};
  }
  const bool has_peaks = job.highest.has_value();
  const Json imbalance = has_peaks && job.median_peak_bytes != 0
                             ? Json(static_cast<double>(job.ranks[*job.highest].peak_bytes) /
                                    static_cast<double>(job.median_peak_bytes))
                             : Json();
  Json unknown = Json::object();
  if (!job.why_no_job_peak.empty()) unknown["job_peak"] = job.why_no_job_peak;
  if (!job.why_no_stragglers.empty()) unknown["stragglers"] = job.why_no_stragglers;
  if (!job.why_no_parallelism.empty()) unknown["parallelism"] = job.why_no_parallelism;
  return {{"launcher", text_or_null(launcher_name(job.launcher))},
          {"world_size", or_null(job.world_size)},
          {"hosts", job.hosts},
          {"ranks", ranks},
          {"missing", job.missing},
          {"missing_count", job.missing_count},
          {"highest_rank", has_peaks ? Json(job.ranks[*job.highest].rank) : Json()},
          {"median_peak_bytes", has_peaks ? Json(job.median_peak_bytes) : Json()},
          {"least_peak_bytes", has_peaks ? Json(job.least_peak_bytes) : Json()},
          {"highest_to_median", imbalance},
          {"lines_above_median", lines},
          {"job_peak_bytes", or_null(job.job_peak_bytes)},
          {"job_peak_time_ns", job.job_peak_bytes ? Json(job.job_peak_ns) : Json()},
          {"first_refusal", refusal},
          {"collectives", job.collectives},
          {"stragglers", stragglers},
          {"parallelism", divided},
          {"clocks", clocks},
          {"unknown", unknown}};
}

}  // namespace gpumemprof
