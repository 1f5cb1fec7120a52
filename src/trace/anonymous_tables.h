// Tables with their names replaced, and what became of the stacks of the ones they are made from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/anonymizer.h"
#include "trace/event_source.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Not thread-safe.
class AnonymousTables {
 public:
  explicit AnonymousTables(std::shared_ptr<Anonymizer> names) : names_(std::move(names)) {}

  /// What came since the last call.
  void take_stacks(const Tables& from);
  /// All of them, and devices, threads and clocks.
  void take_processes(const Tables& from);

  const Tables& tables() const { return tables_; }
  Tables move_tables() { return std::move(tables_); }
  /// By stack of the other tables: ours. Two of theirs may be one of ours: the same package in two
  /// environments.
  const std::vector<uint32_t>& stacks() const { return stacks_; }
  uint32_t stack(uint32_t theirs) const { return theirs < stacks_.size() ? stacks_[theirs] : 0; }
  /// What the program itself says, such as the name of a phase; behind `start`, which is PyTorch's.
  uint32_t take_words(std::string_view text, std::string_view start = {});
  /// What names nothing of the program's.
  uint32_t keep(std::string_view text) { return tables_.strings.intern(text); }
  std::string input(std::string_view path) { return names_->input(path); }

 private:
  uint32_t take_string(const std::string& text) { return tables_.strings.intern(text); }

  std::shared_ptr<Anonymizer> names_;
  Tables tables_;
  std::vector<uint32_t> frames_;  // by frame of the other tables: ours
  std::vector<uint32_t> stacks_;
};

/// Reasons of a loss may contain any name.
void withhold_reasons(std::vector<LossReason>* reasons);

}  // namespace gpumemprof
