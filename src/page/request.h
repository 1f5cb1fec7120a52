// The page's requests: query values with their bounds, and the answer.
#pragma once

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "page/block_keys.h"
#include "page/file.h"
#include "page/filter.h"

namespace gpumemprof {

struct PageAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  bool is_later = false;  ///< there is none yet: the same request is to be asked again
};
PageAnswer later_answer();
PageAnswer json_answer(const nlohmann::ordered_json& json);
/// `columns` from Columns::finish().
PageAnswer columns_answer(std::string columns);
/// One line; `at`: the byte of a filter where the error is.
PageAnswer error_answer(int status, std::string_view what, int64_t at = -1);

/// A request about one device. Values are read one by one; the first invalid one is remembered, and
/// values may be used only if refusal() is empty.
class PageRequest {
 public:
  PageRequest(std::string_view query, PageFile& file) : query_(query), file_(file) {}

  static constexpr uint32_t kMostColumns = 8192;

  size_t device();
  /// The moments [from, to), at least one; by default all.
  struct Window {
    uint32_t from = 0, to = 0;
  };
  Window window();
  uint32_t moment(std::string_view name, uint32_t otherwise);
  uint64_t number(std::string_view name, uint64_t least, uint64_t most, uint64_t otherwise);
  bool has(std::string_view name) const;
  std::string text(std::string_view name);
  Dimension by(Dimension otherwise);
  const Filter& filter(std::string_view name = "filter");
  /// Refuses a filter that counts the steps of a device of which none are known.
  void need_steps(const Filter& filter, const PageFile& file, size_t device);
  uint32_t columns() { return static_cast<uint32_t>(number("columns", 1, kMostColumns, 1024)); }

  void refuse(std::string what, int64_t at = -1);
  bool is_refused() const { return !refusal_.empty(); }
  PageAnswer refusal() const { return error_answer(400, refusal_, at_); }

  PageFile& file() { return file_; }
  const BlockTable& table() { return *file_.devices()[device()].table; }

 private:
  std::string_view query_;
  PageFile& file_;
  Filter filter_;
  std::string refusal_;
  int64_t at_ = -1;
};

}  // namespace gpumemprof
