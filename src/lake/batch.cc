#include "lake/batch.h"

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

std::string_view LakeColumn::text(size_t row) const {
  return std::string_view(texts).substr(static_cast<size_t>(offsets[row]),
                                        static_cast<size_t>(offsets[row + 1] - offsets[row]));
}

}  // namespace gpumemprof
