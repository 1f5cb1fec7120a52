#include "report/describe/describe.h"

#include <fmt/format.h>

#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

class CostWords {
 public:
  explicit CostWords(const Cost& cost) : cost_(cost) {}

  Section section() {
    if (!cost_.need_bytes) {
      say("Unknown: " + why("need_bytes") + ".");
      return std::move(section_);
    }
    say_need();
    say_board();
    say_cheapest();
    say_waste();
    say_saving();
    return std::move(section_);
  }

 private:
  void say(std::string text) { section_.add(Sentence{std::move(text)}); }
  std::string why(std::string_view figure) const {
    for (const auto& [name, reason] : cost_.unknown) {
      if (name == figure) return reason;
    }
    return "";
  }
  std::string money(double amount) const {
    const std::string digits = amount != 0 && amount < 0.1 ? fmt::format("{:.2g}", amount)
                                                           : fmt::format("{:.2f}", amount);
    return cost_.currency.empty() ? digits : digits + ' ' + printable(cost_.currency);
  }
  /// "3.20 GiB ÷ 79.1 GiB × 59.76 = 2.42 EUR a day", or why not.
  std::string share(uint64_t bytes) const {
    const auto a_day = cost_.per_day(bytes);
    if (!a_day)
      return cost_.price ? "cost unknown, because " + why("board_bytes") : "no --price was given";
    return fmt::format("{} ÷ {} × {:.2f} = {} a day", format_bytes(bytes),
                       format_bytes(*cost_.board_bytes), cost_.price->per_hour * kHoursOfADay,
                       money(*a_day));
  }
  void say_need() {
    const char* of = cost_.need_basis == NeedBasis::kDriver
                         ? "what the driver counted for the run's processes"
                     : cost_.need_basis == NeedBasis::kReserved
                         ? "reserved by the allocator, without CUDA's context and libraries"
                         : "allocated, without the allocator's cache, CUDA's context and libraries";
    if (cost_.refused_bytes == 0)
      return say(fmt::format("The peak needs {}: {}.", format_bytes(*cost_.need_bytes), of));
    const uint64_t peak = *cost_.need_bytes - cost_.refused_bytes;
    say(fmt::format("The run needs {} or more: {} {}, and {} for the request that was refused.",
                    format_bytes(*cost_.need_bytes), format_bytes(peak), of,
                    format_bytes(cost_.refused_bytes)));
  }
  void say_board() {
    if (!cost_.price) return;
    say(fmt::format("The board: {:.2f} an hour × {} h = {} a day.", cost_.price->per_hour,
                    kHoursOfADay, money(cost_.price->per_hour * kHoursOfADay)));
  }
  std::string board_text(const BoardPrice& board) const {
    std::string text = fmt::format("{} with {}, {:.2f} an hour × {} h = {} a day",
                                   printable(board.board), format_bytes(board.usable_bytes),
                                   board.price_per_hour, kHoursOfADay,
                                   money(board.price_per_hour * kHoursOfADay));
    if (!cost_.price) return text;
    const double less = (cost_.price->per_hour - board.price_per_hour) * kHoursOfADay;
    if (less > 0) return text + fmt::format(", {} less", money(less));
    return text + (less < 0 ? fmt::format(", {} more", money(-less)) : ", the same");
  }
  void say_cheapest() {
    if (cost_.boards == 0) return;
    say(cost_.cheapest ? "The cheapest board of your list that holds it: " +
                             board_text(*cost_.cheapest) + "."
                       : std::string("No board of your list holds it."));
  }
  void say_waste() {
    const auto waste = cost_.waste_bytes();
    if (!waste) return say("Waste: unknown, because " + why("waste_bytes") + ".");
    say(fmt::format("Waste: {} reserved at most − {} allocated at most = {}: {}.",
                    format_bytes(*cost_.reserved_bytes), format_bytes(cost_.allocated_bytes),
                    format_bytes(*waste), share(*waste)));
  }
  void say_saving() {
    if (!cost_.saving) return say("Saving by advice: unknown, because " + why("saving") + ".");
    const CostSaving& saving = *cost_.saving;
    say(fmt::format("Saving by advice: {}, {} ({}): {}.", printable(saving.kind),
                    format_bytes(saving.bytes), saving_basis_name(saving.basis),
                    share(saving.bytes)));
    if (saving.cheapest)
      say(fmt::format("Then {} are needed: {}.", format_bytes(saving.need_bytes),
                      board_text(*saving.cheapest)));
  }

  const Cost& cost_;
  Section section_{.title = "What it costs"};
};

}  // namespace

Section describe_cost(const Cost& cost) { return CostWords(cost).section(); }

}  // namespace gpumemprof
