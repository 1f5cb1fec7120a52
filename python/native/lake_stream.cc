#include "native/lake_stream.h"

#include <utility>

namespace gpumemprof::python {
namespace {

std::vector<ArrowColumn> arrow_columns(const LakeBatch& batch) {
  std::vector<ArrowColumn> columns;
  for (const LakeColumn& column : batch) {
    columns.push_back({.name = column.name,
                       .format = column.is_text ? "u" : "l",
                       .length = column.rows,
                       .nulls = column.unknown,
                       .known = column.known.data(),
                       .values = column.is_text ? static_cast<const void*>(column.offsets.data())
                                                : column.numbers.data(),
                       .texts = column.is_text ? column.texts.data() : nullptr});
  }
  return columns;
}

class LakeTable final : public ArrowTable {
 public:
  LakeTable(std::unique_ptr<LakeRows> rows, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), rows_(std::move(rows)) {}
  std::vector<ArrowColumn> columns() const override { return arrow_columns(rows_->columns()); }
  ArrowBatch next() override {
    auto batch = std::make_shared<LakeBatch>(rows_->columns());
    rows_->fill(batch.get());
    return {arrow_columns(*batch), batch, static_cast<int64_t>(rows_of(*batch))};
  }

 private:
  std::shared_ptr<const void> owner_;  // outlives the rows
  std::unique_ptr<LakeRows> rows_;
};

}  // namespace

std::unique_ptr<ArrowTable> arrow_of_lake(std::unique_ptr<LakeRows> rows,
                                          std::shared_ptr<const void> owner) {
  return std::make_unique<LakeTable>(std::move(rows), std::move(owner));
}

}  // namespace gpumemprof::python
