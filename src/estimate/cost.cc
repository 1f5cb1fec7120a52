#include "estimate/cost.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "analysis/leaks/leak_limit.h"
#include "analysis/replay/snapshot_device.h"
#include "base/in_quotes.h"
#include "base/size.h"
#include "estimate/prices.h"

namespace gpumemprof {
namespace {

constexpr double kMostPerHour = 1e6;
constexpr size_t kMostCurrencyBytes = 8;

std::string_view without_blanks(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

bool is_currency(std::string_view text) {
  return text.size() <= kMostCurrencyBytes && std::ranges::none_of(text, [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || (c >= '!' && c <= '#') ||
                  (c >= '%' && c <= '@') || c == '\x7f';
         });
}

/// What the driver counted for the run's processes, where it sampled one device alone: of several
/// it is not known which is which.
std::optional<uint64_t> driver_bytes(const Analysis& analysis) {
  if (!analysis.machine || analysis.machine->devices.size() != 1) return std::nullopt;
  const auto& highest = analysis.machine->devices[0].highest_own;
  return highest ? highest->own.bytes : std::nullopt;
}

std::optional<uint64_t> board_bytes(const Analysis& analysis, const Tables& tables,
                                    const DeviceAnalysis& device,
                                    std::optional<uint64_t> capacity_bytes) {
  if (auto limit = memory_limit(device.device, tables, capacity_bytes)) return limit;
  if (analysis.machine && analysis.machine->devices.size() == 1)
    return analysis.machine->devices[0].total.bytes;
  return std::nullopt;
}

Prediction exact_prediction(uint64_t bytes) {
  Prediction out;
  out.device = PredictedBytes{bytes, bytes, bytes};
  return out;
}

/// The advice with the largest saving on the device.
const Advice* largest_saving(const AdviceReport& report, uint16_t device) {
  const Advice* best = nullptr;
  for (const Advice& one : report.advice) {
    if (one.bytes != 0 && one.device == device && (!best || one.bytes > best->bytes)) best = &one;
  }
  return best;
}

std::optional<uint64_t> reserved_for_requests(const DeviceAnalysis& device) {
  const SnapshotDevice* told = device.snapshot.get();
  const auto most = peak_reserved_bytes(device);
  const bool had_cache = most && told && told->cached_before_bytes != 0;
  return had_cache ? told->most_reserved_after_cache_bytes : most;
}

/// What the request lacked that ended the run; of one that was served later nothing.
uint64_t refused_bytes(const Analysis& analysis, const DeviceAnalysis& device) {
  if (device.snapshot && !device.snapshot->ooms.empty()) {
    const OomExplanation& last = device.snapshot->ooms.back();
    return last.went_on ? 0 : last.more_bytes_needed.value_or(last.asked_bytes);
  }
  const auto& refused = analysis.ends.refused;
  const bool ended_it = !refused.empty() && !analysis.ends.failure.empty();
  return ended_it && refused[0].requested ? refused[0].requested->least_bytes : 0;
}

void add_need(const Analysis& analysis, const DeviceAnalysis& device, Cost* cost) {
  const auto driver = driver_bytes(analysis);
  cost->reserved_bytes = reserved_for_requests(device);
  cost->allocated_bytes = peak_allocated_bytes(device);
  cost->need_bytes = cost->reserved_bytes.value_or(cost->allocated_bytes);
  cost->need_basis = cost->reserved_bytes ? NeedBasis::kReserved : NeedBasis::kAllocated;
  if (driver && *driver >= *cost->need_bytes) {
    cost->need_bytes = driver;
    cost->need_basis = NeedBasis::kDriver;
  }
  cost->refused_bytes = refused_bytes(analysis, device);
  *cost->need_bytes += cost->refused_bytes;
  if (!cost->reserved_bytes)
    cost->unknown.emplace_back("waste_bytes", "what the allocator reserved is not known");
}

Status add_saving(const DeviceAnalysis& device, const AdviceReport* advice,
                  const CostOptions& options, Cost* cost) {
  if (!advice || !advice->not_looked_because.empty()) {
    cost->unknown.emplace_back("saving", "no advice was requested: add --advice");
    return {};
  }
  const Advice* best = largest_saving(*advice, device.device);
  if (!best) {
    cost->unknown.emplace_back("saving", "no advice saves bytes of this device");
    return {};
  }
  CostSaving saving{.kind = best->kind, .basis = best->basis, .bytes = best->bytes};
  saving.need_bytes = *cost->need_bytes - std::min(*cost->need_bytes, best->bytes);
  if (!options.boards.empty()) {
    auto cheapest = cheapest_that_fits(exact_prediction(saving.need_bytes), options.boards);
    if (!cheapest) return std::unexpected(cheapest.error());
    saving.cheapest = *cheapest;
  }
  cost->saving = std::move(saving);
  return {};
}

}  // namespace

Result<Price> parse_price(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::kUsage, in_quotes(text, 40) +
                                       " is not a price: give the price of the board per hour, such "
                                       "as 2.49/h or 2.49 EUR/h, above 0");
  };
  std::string_view rest = without_blanks(text);
  if (rest.ends_with("/h")) rest = without_blanks(rest.substr(0, rest.size() - 2));
  const size_t digit = rest.find_first_of("0123456789.-+");
  if (digit == rest.npos) return wrong();
  Price price;
  std::string_view before = without_blanks(rest.substr(0, digit));
  rest.remove_prefix(digit);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), price.per_hour,
                                            std::chars_format::fixed);
  const std::string_view after =
      without_blanks(rest.substr(static_cast<size_t>(end - rest.data())));
  const bool is_number = error == std::errc() && price.per_hour > 0 && price.per_hour <= kMostPerHour;
  if (!is_number || (!before.empty() && !after.empty()) || !is_currency(before) ||
      !is_currency(after))
    return wrong();
  price.currency = before.empty() ? after : before;
  return price;
}

const char* need_basis_name(NeedBasis basis) {
  return basis == NeedBasis::kDriver     ? "driver"
         : basis == NeedBasis::kReserved ? "reserved"
                                         : "allocated";
}

std::optional<uint64_t> Cost::waste_bytes() const {
  if (!reserved_bytes) return std::nullopt;
  return *reserved_bytes - std::min(*reserved_bytes, allocated_bytes);
}

std::optional<double> Cost::per_day(std::optional<uint64_t> bytes) const {
  if (!bytes || !price || !board_bytes || *board_bytes == 0) return std::nullopt;
  return static_cast<double>(*bytes) / static_cast<double>(*board_bytes) * price->per_hour *
         kHoursOfADay;
}

Result<Cost> cost_of(const Analysis& analysis, const Tables& tables, const AdviceReport* advice,
                     const CostOptions& options) {
  Cost cost{.price = options.price, .boards = options.boards.size()};
  if (!options.boards.empty()) cost.currency = options.boards[0].currency;
  if (options.price && !options.price->currency.empty()) {
    if (!cost.currency.empty() && cost.currency != options.price->currency)
      return fail(ErrorCode::kUsage,
                  "--price and the price list have two currencies, which cannot be compared");
    cost.currency = options.price->currency;
  }
  const DeviceAnalysis* device = main_device(analysis, tables);
  if (!device || is_host_memory(tables.devices[device->device])) {
    cost.unknown.emplace_back("need_bytes", device ? "the peak is in the host's memory, on no board"
                                                   : "nothing was allocated");
    return cost;
  }
  add_need(analysis, *device, &cost);
  cost.board_bytes = board_bytes(analysis, tables, *device, options.capacity_bytes);
  if (!cost.board_bytes)
    cost.unknown.emplace_back("board_bytes", "the device's size is not known: give --capacity");
  // The run had more: it was on another board.
  if (cost.board_bytes && *cost.board_bytes < *cost.need_bytes - cost.refused_bytes) {
    cost.unknown.emplace_back("board_bytes",
                              fmt::format("a board of {} does not hold the peak",
                                          format_bytes(*cost.board_bytes)));
    cost.board_bytes.reset();
  }
  if (!options.boards.empty()) {
    auto cheapest = cheapest_that_fits(exact_prediction(*cost.need_bytes), options.boards);
    if (!cheapest) return std::unexpected(cheapest.error());
    cost.cheapest = *cheapest;
  }
  if (auto done = add_saving(*device, advice, options, &cost); !done)
    return std::unexpected(done.error());
  return cost;
}

}  // namespace gpumemprof
