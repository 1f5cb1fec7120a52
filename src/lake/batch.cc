#include "lake/batch.h"

#include <ranges>

#include "report/words.h"

namespace gpumemprof {

void LakeColumn::add_bit(bool is_known) {
  if (rows % 8 == 0) known.push_back(0);
  if (is_known) known.back() |= static_cast<uint8_t>(1u << (rows % 8));
  unknown += !is_known;
  ++rows;
}

void LakeColumn::add(int64_t number) {
  numbers.push_back(number);
  add_bit(true);
}

void LakeColumn::add_unsigned(uint64_t number) {
  if (number > INT64_MAX) return add_unknown();
  add(static_cast<int64_t>(number));
}

void LakeColumn::add(std::string_view text) {
  texts += text;
  offsets.push_back(static_cast<int32_t>(texts.size()));
  add_bit(true);
}

void LakeColumn::add_unknown() {
  if (is_text)
    offsets.push_back(offsets.back());
  else
    numbers.push_back(0);
  add_bit(false);
}

void LakeColumn::add_words(std::string_view words) {
  words.empty() ? add_unknown() : add(printable(words));
}

std::string_view LakeColumn::text(size_t row) const {
  return std::string_view(texts).substr(static_cast<size_t>(offsets[row]),
                                        static_cast<size_t>(offsets[row + 1] - offsets[row]));
}

LakeBatch batch_of(std::string_view columns) {
  constexpr std::string_view kText = ":text";
  LakeBatch batch;
  for (const auto& word : std::views::split(columns, ' ')) {
    std::string_view name(word.begin(), word.end());
    const bool is_text = name.ends_with(kText);
    if (is_text) name.remove_suffix(kText.size());
    batch.emplace_back(name, is_text);
  }
  return batch;
}

}  // namespace gpumemprof
