#include "estimate/prices.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/in_quotes.h"
#include "base/size.h"
#include "estimate/boards.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxPriceBytes = 1u << 20, kMaxRows = 10000;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t'))
    text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

/// "A100 40GB" is "NVIDIA A100 40GB": all of its words are there.
bool is_called(const BoardFacts& board, std::string_view name) {
  const std::string known = ' ' + lower(board.name) + ' ', given = lower(name) + ' ';
  for (size_t begin = 0; begin < given.size();) {
    const size_t end = given.find(' ', begin);
    const bool is_word = end > begin;
    if (is_word && !known.contains(' ' + given.substr(begin, end - begin + 1))) return false;
    begin = end + 1;
  }
  return true;
}

/// One row, whichever syntax it came in; `where` names it in messages.
Result<BoardPrice> price_of(std::string board, std::string_view memory, double price,
                            std::string currency, const std::string& where) {
  if (board.empty()) return fail(ErrorCode::kBadInput, where + " has no board name");
  if (!(std::isfinite(price) && price >= 0))
    return fail(ErrorCode::kBadInput, where + ": price_per_hour is not a price");
  BoardPrice out{std::move(board), 0, price, std::move(currency)};
  if (!memory.empty()) {
    auto bytes = parse_size(memory);
    if (!bytes) return fail(ErrorCode::kBadInput, where + ": " + bytes.error().message);
    out.usable_bytes = *bytes;
    return out;
  }
  std::string meant;
  for (const BoardFacts& known : known_boards()) {
    if (!is_called(known, out.board)) continue;
    meant += (meant.empty() ? "" : ", ") + std::string(known.name);
    if (out.usable_bytes == 0) out.usable_bytes = known.usable_bytes;
    if (lower(known.name) == lower(out.board)) return out;
  }
  if (meant.contains(','))
    return fail(ErrorCode::kBadInput, where + ": " + in_quotes(out.board, 60) +
                                          " may be one of several: " + meant);
  if (out.usable_bytes == 0) {
    return fail(ErrorCode::kBadInput, where + ": the memory of " + in_quotes(out.board, 60) +
                                          " is unknown: give it as memory, such as 79.1GiB");
  }
  return out;
}

Result<std::vector<BoardPrice>> parse_json_prices(std::string_view text) {
  struct Watch : nlohmann::detail::json_sax_dom_parser<Json> {
    using nlohmann::detail::json_sax_dom_parser<Json>::json_sax_dom_parser;
    std::optional<uint64_t> offset;
    bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) {
      offset = at == 0 ? 0 : at - 1;
      return false;
    }
  };
  Json json;
  Watch watch(json, false);
  if (!Json::sax_parse(text.begin(), text.end(), &watch))
    return fail_at(watch.offset.value_or(0), "is not valid JSON");
  if (!json.is_array()) return fail(ErrorCode::kBadInput, "is not a list of boards and prices");
  std::vector<BoardPrice> out;
  for (const Json& entry : json) {
    const std::string where = "entry " + std::to_string(out.size() + 1);
    const auto text_of = [&](const char* name) {
      return entry.is_object() && entry.contains(name) && entry[name].is_string()
                 ? entry[name].get<std::string>()
                 : std::string();
    };
    const bool has_price = entry.is_object() && entry.contains("price_per_hour") &&
                           entry["price_per_hour"].is_number();
    auto row = price_of(text_of("board"), text_of("memory"),
                        has_price ? entry["price_per_hour"].get<double>() : std::nan(""),
                        text_of("currency"), where);
    if (!row) return std::unexpected(row.error());
    if (out.size() == kMaxRows) return fail(ErrorCode::kBadInput, "has too many rows");
    out.push_back(std::move(*row));
  }
  return out;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const size_t comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == line.npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

Result<std::vector<BoardPrice>> parse_csv_prices(std::string_view text) {
  std::vector<BoardPrice> out;
  std::vector<std::string_view> names;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const std::string where = "line " + std::to_string(number);
    if (line.find('"') != line.npos)
      return fail(ErrorCode::kBadInput, where + ": quoted cells are not supported");
    const auto cells = cells_of(line);
    if (names.empty()) {
      names = cells;
      const bool is_header = std::ranges::find(names, "board") != names.end() &&
                             std::ranges::find(names, "price_per_hour") != names.end();
      if (!is_header)
        return fail(ErrorCode::kBadInput, "has no header with board and price_per_hour");
      continue;
    }
    if (cells.size() != names.size()) {
      return fail(ErrorCode::kBadInput, where + " has " + std::to_string(cells.size()) +
                                            " cells, the header " + std::to_string(names.size()));
    }
    const auto cell = [&](std::string_view name) {
      const auto at = std::ranges::find(names, name);
      return at == names.end() ? std::string_view()
                               : cells[static_cast<size_t>(at - names.begin())];
    };
    double price = 0;
    const std::string_view digits = cell("price_per_hour");
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), price);
    if (error != std::errc() || stop != digits.data() + digits.size()) price = std::nan("");
    auto row = price_of(std::string(cell("board")), cell("memory"), price,
                        std::string(cell("currency")), where);
    if (!row) return std::unexpected(row.error());
    if (out.size() == kMaxRows) return fail(ErrorCode::kBadInput, "has too many rows");
    out.push_back(std::move(*row));
  }
  return out;
}

}  // namespace

Result<std::vector<BoardPrice>> parse_prices(std::string_view text) {
  if (text.size() > kMaxPriceBytes)
    return fail(ErrorCode::kBadInput, "is too large for a price list");
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return fail_at(0, "is empty");
  const bool is_json = text[first] == '[' || text[first] == '{';
  auto prices = is_json ? parse_json_prices(text) : parse_csv_prices(text);
  if (prices && prices->empty()) return fail(ErrorCode::kBadInput, "has no boards");
  return prices;
}

Result<std::optional<BoardPrice>> cheapest_that_fits(const Prediction& prediction,
                                                     const std::vector<BoardPrice>& prices) {
  const auto need = bytes_that_must_fit(prediction);
  std::optional<BoardPrice> best;
  for (const BoardPrice& price : prices) {
    if (price.currency != prices.front().currency) {
      return fail(ErrorCode::kUsage, "the price list mixes currencies, which cannot be compared");
    }
    if (fits(need, price.usable_bytes) != FitVerdict::kFits) continue;
    const bool better =
        !best || price.price_per_hour < best->price_per_hour ||
        (price.price_per_hour == best->price_per_hour && price.usable_bytes > best->usable_bytes);
    if (better) best = price;
  }
  return best;
}

}  // namespace gpumemprof
