#include "recording/unrecorded.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

namespace gpumemprof {

using namespace format;

namespace {

constexpr size_t kMostPids = 10'000;

uint32_t state_of(const Unrecorded& entry) {
  return __atomic_load_n(&entry.state, __ATOMIC_ACQUIRE);
}

void free_entry(Unrecorded* entry) {
  memset(reinterpret_cast<char*>(entry) + sizeof(entry->state), 0,
         sizeof(*entry) - sizeof(entry->state));
  __atomic_store_n(&entry->state, 0, __ATOMIC_RELEASE);
}

/// Takes what was counted out of a word that a process may still add to.
uint64_t take_all(uint64_t* word) { return __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL); }

uint32_t notes_now(const std::string& folder) {
  return access(folder.c_str(), F_OK) == 0 ? kNoted | kFolderWasThere : kNoted;
}

bool are_alike(const Unrecorded& a, const Unrecorded& b) {
  return a.at == b.at && a.error == b.error && a.user == b.user && a.notes == b.notes &&
         a.file_limit_bytes == b.file_limit_bytes &&
         memcmp(a.command, b.command, sizeof(a.command)) == 0;
}

/// What may lie behind the error.
std::string cause_of(const Unrecorded& entry) {
  switch (entry.error) {
    case EACCES:
    case EPERM:
      return entry.user == geteuid() ? "" : "it runs as user " + std::to_string(entry.user);
    case ENOENT:
    case ENOTDIR:
      return entry.notes & kFolderWasThere
                 ? "it cannot see the recording's folder: it has another root or other mounts"
                 : "the recording's folder was deleted";
    case ENOSPC:
      return entry.notes & kNoInodesThen ? "no inodes were left" : "";
    case EFBIG:
      return "its file size limit is " + format_bytes(entry.file_limit_bytes);
    case EMFILE:
      return "its limit of descriptors";
    default:
      return "";
  }
}

}  // namespace

std::string why_it_has_no_file(const Unrecorded& entry) {
  std::string text =
      entry.at == kAtFirstPage ? "its file could not be written: " : "its file could not be made: ";
  text += strerror(entry.error);
  const std::string cause = cause_of(entry);
  return cause.empty() ? text : text + " (" + cause + ')';
}

std::string lost_text(uint64_t processes, uint64_t events, uint64_t bytes) {
  if (events == 0) return "";
  const std::string who = processes > 1 ? std::to_string(processes) + " processes" : "it";
  return who + " lost " + std::to_string(events) + (events == 1 ? " event" : " events") +
         (bytes == 0 ? "" : ", " + format_bytes(bytes) + " of allocations");
}

/// Of a process that is gone.
void UnrecordedProcesses::end(Unrecorded* entry) {
  for (Unrecorded& other : arena_->header()->unrecorded) {
    if (&other == entry || state_of(other) != Unrecorded::kEnded || !are_alike(other, *entry))
      continue;
    other.processes += entry->processes;
    other.events += entry->events, other.bytes += entry->bytes;
    return free_entry(entry);
  }
  __atomic_store_n(&entry->state, Unrecorded::kEnded, __ATOMIC_RELEASE);
}

size_t UnrecordedProcesses::round() {
  size_t alive = 0;
  for (size_t i = 0; i < kArenaUnrecorded; ++i) {
    Unrecorded& entry = arena_->header()->unrecorded[i];
    if (state_of(entry) != Unrecorded::kFilled) continue;
    auto [here, is_new] = here_.try_emplace(i);
    if (is_new) here->second = process_here(entry.pid, entry.start_ticks);
    if (!(entry.notes & kNoted)) {
      entry.notes |= notes_now(folder_);
      if (pids_.size() < kMostPids && here->second.pid != 0)
        pids_.insert(static_cast<int>(here->second.pid));
    }
    if (here->second.is_running()) {
      ++alive;
      continue;
    }
    here_.erase(here);
    end(&entry);
  }
  return alive;
}

std::vector<UnrecordedProcess> UnrecordedProcesses::take() {
  std::vector<UnrecordedProcess> all;
  for (Unrecorded& entry : arena_->header()->unrecorded) {
    const uint32_t state = state_of(entry);
    if (state != Unrecorded::kFilled && state != Unrecorded::kEnded) continue;
    UnrecordedProcess one = {
        .pid = static_cast<int>(entry.pid),
        .command = {entry.command, strnlen(entry.command, sizeof(entry.command))},
        .reason = why_it_has_no_file(entry),
        .processes = entry.processes,
        .lost_events = take_all(&entry.events),
        .lost_bytes = take_all(&entry.bytes)};
    if (state == Unrecorded::kEnded) free_entry(&entry);
    if (one.lost_events != 0) all.push_back(std::move(one));
  }
  Unrecorded& crowd = arena_->header()->crowd;
  if (const uint64_t events = take_all(&crowd.events); events != 0) {
    all.push_back({.command = "",
                   .reason = "more processes than can be counted could not create a file",
                   .processes = crowd.processes,
                   .lost_events = events,
                   .lost_bytes = take_all(&crowd.bytes)});
  }
  return all;
}

}  // namespace gpumemprof
