// The page's answers, one function per request (docs/page-data.md).
#pragma once

#include <compare>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "page/file.h"
#include "page/request.h"
#include "report/document.h"

namespace gpumemprof {

/// The file's part of `run`.
nlohmann::ordered_json file_json(const PageFile& file, WholeRun& whole,
                                 nlohmann::ordered_json document);

PageAnswer levels_answer(PageRequest& request);
PageAnswer times_answer(PageRequest& request);
PageAnswer blocks_answer(PageRequest& request);
/// As blocks, by default ordered by bytes over time.
PageAnswer space_time_answer(PageRequest& request);
PageAnswer holders_answer(PageRequest& request);
PageAnswer marks_answer(PageRequest& request);
PageAnswer block_answer(PageRequest& request);
PageAnswer stack_answer(PageRequest& request);
PageAnswer search_answer(PageRequest& request);
PageAnswer block_next_answer(PageRequest& request);
PageAnswer space_answer(PageRequest& request);
PageAnswer source_answer(PageRequest& request);
/// The two that replay the allocator: for the thread that reads whole runs.
PageAnswer whatif_answer(PageRequest& request);
PageAnswer allocator_answer(PageRequest& request);
/// What is compared: a device, as an index in devices(), of the whole run or at a moment.
struct ComparedSide {
  PageFile* file = nullptr;
  size_t device = 0;
  std::optional<uint32_t> moment;
  auto operator<=>(const ComparedSide&) const = default;
};
/// The report of `diff` for two runs or two step ends. Null if there is none. For the thread that
/// reads whole runs.
nlohmann::ordered_json compare_document(const ComparedSide& a, const ComparedSide& b);
/// The same; empty while it is being made.
using DocumentOf = std::function<std::optional<nlohmann::ordered_json>(const ComparedSide&,
                                                                       const ComparedSide&)>;
/// `other` may be the request's own file.
PageAnswer compare_answer(PageRequest& request, PageFile& other, const DocumentOf& document_of);

/// Nanoseconds after the start of the run, whose wall-clock time may be known; 0 before it.
uint64_t since_start(const PageFile& file, uint64_t time_ns);
/// The time of a moment is that of its last event; that of the first moment is that of the first
/// event.
uint64_t time_of(const PageFile& file, const PageDevice& device, uint32_t moment);

/// Null where the page has no such device or moment.
nlohmann::ordered_json page_evidence(const EvidencePlace& evidence,
                                     const std::vector<PageDevice>& devices, const Tables& tables);

/// The filter that takes the blocks; as many lines as a filter may name.
std::string filter_of(const EvidencePlace& evidence, const Tables& tables);

}  // namespace gpumemprof
