#include "cli/options.h"

#include "base/file.h"
#include "base/size.h"
#include "cli/commands.h"
#include "estimate/prices.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostListBytes = 1u << 20;

}  // namespace

void add_cost_options(CLI::App* command, CostArguments* arguments) {
  add_value(command, "--price", "PRICE", arguments->price,
            "price of the board per hour, such as 2.49/h or \"2.49 EUR/h\": shows what the "
            "waste costs per day");
  add_value(command, "--prices", "FILE", arguments->prices,
            "a price list of boards, to name the cheapest that holds the peak");
}

Result<std::optional<uint64_t>> read_capacity(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto bytes = parse_capacity(text);
  if (!bytes) return fail(ErrorCode::kUsage, "--capacity: " + bytes.error().message);
  return *bytes;
}

int read_cost_options(const CostArguments& arguments, const std::string& capacity,
                      std::optional<CostOptions>* options) {
  options->reset();
  if (!arguments.is_given()) return kExitOk;
  CostOptions read;
  if (!arguments.price.empty()) {
    auto price = parse_price(arguments.price);
    if (!price) return report_error("--price", price.error());
    read.price = std::move(*price);
  }
  if (!arguments.prices.empty()) {
    auto text = read_small_file(arguments.prices, kMostListBytes);
    if (!text) return report_error(arguments.prices, text.error());
    auto boards = parse_prices(*text);
    if (!boards) return report_error(arguments.prices, boards.error());
    read.boards = std::move(*boards);
  }
  const auto bytes = read_capacity(capacity);
  if (!bytes) return report_error("", bytes.error());
  read.capacity_bytes = *bytes;
  *options = std::move(read);
  return kExitOk;
}

}  // namespace gpumemprof
