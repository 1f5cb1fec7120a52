// What the page is told, one function a request (docs/page-data.md).
#pragma once

#include "page/request.h"

namespace gpumemprof {

/// The file's part of `run`.
nlohmann::ordered_json file_json(PageFile& file);

PageAnswer levels_answer(PageRequest& request);
PageAnswer times_answer(PageRequest& request);
PageAnswer blocks_answer(PageRequest& request);
/// As blocks, by what they are over time where nothing else is asked for.
PageAnswer space_time_answer(PageRequest& request);
PageAnswer holders_answer(PageRequest& request);
PageAnswer marks_answer(PageRequest& request);
PageAnswer block_answer(PageRequest& request);
PageAnswer stack_answer(PageRequest& request);
PageAnswer search_answer(PageRequest& request);
PageAnswer block_next_answer(PageRequest& request);
PageAnswer space_answer(PageRequest& request);
PageAnswer source_answer(PageRequest& request);
PageAnswer whatif_answer(PageRequest& request);
/// `other` may be the request's own file.
PageAnswer compare_answer(PageRequest& request, PageFile& other);

/// Why a device's blocks have no categories.
std::string why_no_categories(const PageDevice& device);
/// Why what was before the first event is not known; empty where it is.
std::string why_unknown_before(const PageFile& file, const PageDevice& device);
/// Nanoseconds after the start of the run, which may be told as wall-clock time; 0 before it.
uint64_t since_start(const PageFile& file, uint64_t time_ns);
/// Of a moment: that of its last event; of the first moment that of the first event.
uint64_t time_of(const PageFile& file, const PageDevice& device, uint32_t moment);

}  // namespace gpumemprof
