#include "recording/missing_events.h"

#include "recording/writer_state.h"

namespace gpumemprof {
namespace {

using namespace format;

constexpr const char* kNotInFile = "events missing from the file";

/// Those of buffers, also where sealed chunks hold them already.
uint64_t events_in_buffers(RawFile& raw) {
  uint64_t events = 0;
  for (const auto& [id, stream] : raw.streams()) {
    if (!stream.half) continue;
    const uint8_t expected = salt(stream.id, stream.half->sequence);
    uint64_t last = 0;
    for (const RawEvent& record : stream.half->records) {
      if (!is_intact(record, expected) || time_of(record) < last) continue;
      last = time_of(record);
      events += events_among(&record, 1);
    }
  }
  return events;
}

uint64_t missing_in_streams(const SealedFile& sealed, RawFile& raw) {
  uint64_t missing = 0;
  ConsumedTable streams = sealed.consumed();
  for (const auto& [id, stream] : raw.streams()) streams[id];
  for (const auto& [id, consumed] : streams) {
    const auto known = raw.streams().find(id);
    missing += missing_records(consumed, known == raw.streams().end() ? nullptr : &known->second);
  }
  return missing;
}

uint64_t buffers_in(const RawFile& raw) {
  uint64_t count = 0;
  for (const ChunkRef& chunk : raw.index().chunks) count += chunk.header.type == kStage;
  return count;
}

std::string plural(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + (count == 1 ? one : many);
}

void add_cut(uint64_t bytes, uint64_t whole, MissingEvents* out) {
  if (bytes >= whole) return;
  out->uncounted.push_back("the file was cut at byte " + std::to_string(bytes) + " of " +
                           std::to_string(whole));
}

/// Minor 0 did not count what it wrote. Gaps in the numbers of records and of sealed events show the
/// same loss, so only one counts; a missing end of the file cannot be counted.
void add_of_minor_0(uint64_t bytes, const FirstPage& page, const SealedFile& sealed, RawFile& raw,
                    MissingEvents* out) {
  out->events = sealed.losses().missing_events;
  out->reason = "events of sealed chunks that cannot be read";
  if (out->events == 0) {
    out->events = missing_in_streams(sealed, raw);
    out->reason = "records missing from the file";
  }
  if (!raw.index().damage.empty()) {
    out->uncounted.push_back("the contents of the damaged parts are unknown");
  }
  add_cut(round_to_page(bytes), page.state.next_offset, out);
}

void add_unfinished(uint64_t bytes, const FirstPage& page, const SealedFile& sealed, RawFile& raw,
                    uint64_t raw_events, MissingEvents* out) {
  const RawLosses& met = raw.losses();
  if (met.cut_records > 0) {
    out->uncounted.push_back(
        plural(met.cut_records, " record of a buffer is", " records of buffers are") +
        " beyond the end of the file");
  }
  if (raw.unreadable_stages() > 0) {
    out->uncounted.push_back(plural(raw.unreadable_stages(), " buffer", " buffers") +
                             " of threads cannot be read");
  }
  // A writer that lives is between two stores at any time.
  const bool is_alive = writer_state(page.header, page.state) == WriterState::kAlive;
  if (page.header.minor == 0) {
    if (!is_alive) add_of_minor_0(bytes, page, sealed, raw, out);
    return;
  }
  const uint64_t expected = page.counts.written_events + events_in_buffers(raw);
  const uint64_t there = sealed.event_count() - sealed.losses().missing_events + raw_events;
  if (expected > there && expected < UINT64_MAX / 2) out->events = expected - there;
  out->reason = kNotInFile;
  if (const uint64_t found = buffers_in(raw); found < page.counts.stages && !is_alive) {
    out->uncounted.push_back(plural(page.counts.stages - found, " buffer", " buffers") +
                             " of threads, with their last events, are missing from the file");
  }
}

}  // namespace

Result<FirstPage> read_first_page(File& file) {
  auto header = read_file_header(file);
  if (!header) return std::unexpected(header.error());
  return FirstPage{*header, read_file_state(file), read_file_counts(file),
                   read_finished(file, header->recording_id),
                   read_job_place(file, header->recording_id)};
}

MissingEvents missing_events(File& file, const FirstPage& page, const SealedFile& sealed,
                             RawFile& raw, uint64_t raw_events) {
  MissingEvents out;
  const auto size = file.size();
  const uint64_t bytes = size ? *size : 0;
  if (bytes < kPage) out.uncounted.push_back("the first page of the file is incomplete");
  if (const std::optional<Footer>& footer = sealed.footer()) {
    out.reason = "events of sealed chunks that cannot be read";
    out.events = sealed.losses().missing_events;
    // Before, records that were not there to be sealed were told by their numbers alone, which the
    // sealed chunks that are missing had as well.
    if (footer->tells_missing) {
      out.events += footer->lost.missing_events;
    } else if (out.events == 0) {
      out.events = missing_in_streams(sealed, raw);
      out.reason = "records missing from the file";
    }
    if (footer->lost.is_open_ended) {
      out.uncounted.push_back("parts of the file were missing when it was sealed");
    }
    if (page.finished) add_cut(bytes, page.finished->bytes, &out);
  } else if (page.finished) {
    out.reason = kNotInFile;
    out.events = sealed.losses().missing_events;
    add_cut(bytes, page.finished->bytes, &out);
    if (out.uncounted.empty()) out.uncounted.push_back("the end of the file is damaged");
  } else {
    add_unfinished(bytes, page, sealed, raw, raw_events, &out);
  }
  return out;
}

}  // namespace gpumemprof
