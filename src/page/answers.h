// What the page is told, one function a request (docs/page-data.md).
#pragma once

#include <functional>
#include <optional>

#include "page/request.h"

namespace gpumemprof {

/// The file's part of `run`.
nlohmann::ordered_json file_json(const PageFile& file, WholeRun& whole,
                                 nlohmann::ordered_json document);

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
/// compare_document() of two devices; nothing: it is being made.
using DocumentOf = std::function<std::optional<nlohmann::ordered_json>(size_t, size_t)>;
/// `other` may be the request's own file.
PageAnswer compare_answer(PageRequest& request, PageFile& other, const DocumentOf& document_of);
/// What `diff` says of two files, of these devices, as indexes in devices(). Null where it says
/// nothing of them.
nlohmann::ordered_json compare_document(PageFile& file, size_t device, PageFile& other,
                                        size_t other_device);

/// Nanoseconds after the start of the run, which may be told as wall-clock time; 0 before it.
uint64_t since_start(const PageFile& file, uint64_t time_ns);
/// Of a moment: that of its last event; of the first moment that of the first event.
uint64_t time_of(const PageFile& file, const PageDevice& device, uint32_t moment);

}  // namespace gpumemprof
