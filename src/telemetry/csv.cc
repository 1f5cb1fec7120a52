#include "telemetry/csv.h"

namespace gpumemprof {

Result<std::optional<CsvReader::Row>> CsvReader::next() {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  if (at_ >= text_.size()) return std::optional<Row>{};
  Row row;
  row.offset = at_;
  row.complete = false;
  std::string cell;
  bool quoted = false;
  const auto end_cell = [&] {
    row.cells.push_back(std::move(cell));
    cell.clear();
  };
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (at_ - row.offset > kMaxRowBytes) return fail_at(row.offset, "a row longer than 1 MiB");
    if (quoted) {
      const bool doubled = c == '"' && at_ + 1 < text_.size() && text_[at_ + 1] == '"';
      if (c == '"' && !doubled) {
        quoted = false;
        continue;
      }
      at_ += doubled;
      cell += c;
    } else if (c == '"' && cell.empty()) {
      quoted = true;
    } else if (c == ',') {
      end_cell();
      if (row.cells.size() >= kMaxColumns) return fail_at(at_, "a row with more than 256 columns");
    } else if (c == '\n') {
      row.complete = true;
      ++at_;
      break;
    } else if (c != '\r') {
      cell += c;
    }
  }
  end_cell();
  return row;
}

}  // namespace gpumemprof
