#include "allocator/release.h"

#include <algorithm>
#include <charconv>

namespace gpumemprof {
namespace {

constexpr Release make(uint16_t minor) {
  return {.minor = minor,
          .ties = minor <= 11   ? TieRule::kAddress
                  : minor == 12 ? TieRule::kBlockAge
                                : TieRule::kSegmentAge,
          .one_division_is_unrounded = minor <= 3,
          .rest_fills_last_bucket = minor <= 9,
          .twenty_mb_is_refused = minor <= 9,
          .retries_in_pools = minor >= 13,
          .names_pools = minor >= 12};
}

constexpr std::array kReleases = {make(1),  make(2),  make(3),  make(4),  make(5),
                                  make(6),  make(7),  make(8),  make(9),  make(10),
                                  make(11), make(12), make(13), make(14), make(15)};

/// The minor of the first "2.N" at or after `*at`, which moves behind it.
std::optional<uint16_t> next_minor(std::string_view text, size_t* at) {
  for (size_t i = *at; i + 2 < text.size(); ++i) {
    const bool starts_number =
        i == 0 || (text[i - 1] != '.' && (text[i - 1] < '0' || text[i - 1] > '9'));
    if (!starts_number || text[i] != '2' || text[i + 1] != '.') continue;
    uint16_t minor = 0;
    const char* begin = text.data() + i + 2;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), minor);
    if (error != std::errc()) continue;
    *at = static_cast<size_t>(end - text.data());
    return minor;
  }
  return std::nullopt;
}

}  // namespace

std::string release_name(const Release& release) { return "2." + std::to_string(release.minor); }

std::span<const Release> known_releases() { return kReleases; }
const Release& newest_release() { return kReleases.back(); }

Result<Release> find_release(std::string_view text) {
  if (text == "latest") return newest_release();
  std::string_view number = text;
  for (std::string_view prefix : {"torch", "pytorch"}) {
    if (number.starts_with(prefix)) number.remove_prefix(prefix.size());
  }
  while (number.starts_with(' ') || number.starts_with('=')) number.remove_prefix(1);
  size_t end = 0;
  const std::optional<uint16_t> minor =
      number.starts_with("2.") ? next_minor(number, &end) : std::nullopt;
  // "2.13", "2.13.1", "2.13.0+cu130": what follows the minor does not change a rule.
  const bool ends_well = end == number.size() ||
                         (end < number.size() && std::string_view(".+ar").contains(number[end]));
  for (const Release& release : kReleases) {
    if (minor == release.minor && ends_well) return release;
  }
  return fail(ErrorCode::kUsage, "no rules for PyTorch " + std::string(text) + ": known are " +
                                     release_name(kReleases.front()) + " to " +
                                     release_name(kReleases.back()) + " and latest");
}

std::vector<Release> releases_for_hint(std::string_view hint) {
  size_t at = 0;
  std::vector<uint16_t> minors;
  while (const auto minor = next_minor(hint, &at)) minors.push_back(*minor);
  if (minors.empty()) return {kReleases.begin(), kReleases.end()};
  const auto [low, high] = std::ranges::minmax(minors);
  const bool open = hint.contains(">=") || hint.contains("later") || hint.contains("newer");
  std::vector<Release> possible;
  for (const Release& release : kReleases) {
    if (release.minor >= low && (open || release.minor <= high)) possible.push_back(release);
  }
  // A hint of a release before or after all that are known: the nearest rules.
  if (possible.empty())
    possible.push_back(high < kReleases.front().minor ? kReleases.front() : kReleases.back());
  return possible;
}

}  // namespace gpumemprof
