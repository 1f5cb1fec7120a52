#include "recording/recorded_process.h"

#include <string.h>
#include <unistd.h>

#include "recording/losses.h"

namespace gpumemprof {
namespace {

using namespace format;

template <size_t N>
std::string text(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

std::string at_byte(const Damage& damage) {
  return damage.reason + " (at byte " + std::to_string(damage.offset) + ")";
}

constexpr size_t kMostDamageReasons = 20;

void add_damage(const std::vector<Damage>& list, const std::string& file, Loss* loss) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i < kMostDamageReasons) {
      loss->add(0, list[i].bytes, file + ": " + at_byte(list[i]));
    } else {
      bytes += list[i].bytes;
    }
  }
  if (list.size() > kMostDamageReasons) {
    loss->add(
        0, bytes,
        file + ": " + std::to_string(list.size() - kMostDamageReasons) + " more damaged places");
  }
}

void add_counted(Loss* loss, uint64_t events, const std::string& file, const char* reason) {
  if (events > 0) loss->add(events, 0, file + ": " + reason);
}

PlaceInJob job_place(const format::JobPlace& told) {
  PlaceInJob place;
  if (told.launcher <= kLastLauncher)
    place.launcher = static_cast<Launcher>(told.launcher);
  place.world_size = told.world_size, place.local_world_size = told.local_world_size;
  if (told.local_rank_plus_one != 0) place.local_rank = told.local_rank_plus_one - 1;
  if (told.node_plus_one != 0) place.node = told.node_plus_one - 1;
  place.restarts = told.restarts;
  return place;
}

/// What a sealer is at work on moves. It is done soon; one that is not, because it was stopped,
/// costs what moves while we read, which is said.
void keep_sealer_off(File& file) {
  constexpr int kTries = 20;
  constexpr useconds_t kWaitUs = 10'000;
  for (int i = 0; i < kTries && !file.lock(false); ++i) usleep(kWaitUs);
}

}  // namespace

Result<std::unique_ptr<RecordedProcess>> RecordedProcess::open(
    const std::string& path, FilePool* pool, Tables* tables,
    const std::function<bool(const FileHeader&)>& is_new) {
  auto file = RecordingFile::open(pool->open(path, FileMode::kRead));
  if (!file) return std::unexpected(file.error());
  std::unique_ptr<RecordedProcess> self(new RecordedProcess);
  self->file_ = std::move(*file);
  self->tables_ = tables;
  keep_sealer_off(*self->file_);
  auto page = read_first_page(*self->file_);
  if (!page) return std::unexpected(page.error());
  const FileHeader& header = page->header;
  if (!is_new(header))
    return fail(ErrorCode::kBadInput, path + ": a duplicate of a file already read");
  self->page_ = *page;
  self->process_ = static_cast<uint32_t>(tables->processes.size());
  tables->processes.emplace_back();
  self->sealed_ = std::make_unique<SealedFile>(self->file_.get(), tables, self->process_);
  if (page->finished) self->sealed_->expect_events(page->finished->events);
  self->raw_ = std::make_unique<RawFile>(self->file_.get(), header, tables, self->process_,
                                         &self->sealed_->ids().thread_of_stream);
  // Sealed definitions come first: with one file its own ids and ours are the same then.
  if (auto done = scan_chunks(*self->file_, header.recording_id, &self->raw_->index()); !done) {
    return std::unexpected(done.error());
  }
  self->sealed_->take(self->raw_->index().chunks);
  if (auto done = self->raw_->refresh(); !done) return std::unexpected(done.error());
  self->sealed_->take(self->raw_->index().chunks);
  for (const auto& [stream, list] : self->sealed_->consumed()) {
    auto known = self->raw_->streams().find(stream);
    if (known != self->raw_->streams().end()) known->second.consumed = list;
  }
  if (self->sealed_->footer()) self->page_.state = self->sealed_->footer()->state;
  if (auto size = self->file_->size()) self->bytes_ = *size;
  self->describe(&tables->processes[self->process_]);
  return self;
}

void RecordedProcess::describe(Process* process) const {
  process->pid = page_.header.pid;
  process->parent_pid = page_.header.parent_pid;
  process->start_ticks = page_.header.start_ticks;
  process->host = text(page_.header.host);
  process->command = text(page_.header.command);
  process->python_version = describe_python(page_.state);
  process->stacks = describe_stacks(page_.header, page_.state);
  if (page_.header.rank_plus_one != 0) process->rank = page_.header.rank_plus_one - 1;
  if (page_.job) process->place = job_place(*page_.job);
  process->exited_cleanly = page_.state.clean_exit == 1;
  process->first_time_ns = page_.header.monotonic_ns;
  process->realtime_offset_ns = realtime_offset_ns();
}

std::string RecordedProcess::clock() const {
  const uint64_t of_namespace = page_.job ? page_.job->time_namespace : 0;
  return text(page_.header.boot_id) + ' ' + std::to_string(of_namespace);
}

int64_t RecordedProcess::realtime_offset_ns() const {
  return static_cast<int64_t>(page_.header.realtime_ns - page_.header.monotonic_ns);
}

void RecordedProcess::add_lanes(Merger* merger, uint64_t shift_ns, bool decodes_ahead) {
  Process& process = tables_->processes[process_];
  process.first_time_ns += shift_ns;
  process.realtime_offset_ns -= static_cast<int64_t>(shift_ns);
  const std::optional<uint64_t> last_ns =
      sealed_->add_lanes(merger, shift_ns, decodes_ahead, &sealed_->losses());
  if (process.exited_cleanly) process.end_time_ns = last_ns;
  for (auto& [id, stream] : raw_->streams()) {
    merger->add(std::make_unique<RawLane>(file_.get(), &stream, shift_ns, &raw_->losses()));
  }
}

void RecordedProcess::add_module_names(ModuleNames* names, uint64_t shift_ns) {
  const auto take = [&](Mark mark) {
    mark.time_ns += shift_ns;
    names->add(process_, mark);
  };
  sealed_->each_mark(MarkKind::kModule, take);
  bool has_modules = false;
  for (auto& [id, stream] : raw_->streams()) {
    has_modules |= stream.definitions->has_module_frames();
  }
  for (auto& [id, stream] : raw_->streams()) {
    if (has_modules) each_raw_mark(*file_, stream, MarkKind::kModule, take);
  }
}

void RecordedProcess::each_collective(const std::function<void(const Mark&)>& take) {
  const auto look = [&](const Mark& mark) {
    if (mark.is_of_collective()) take(mark);
  };
  sealed_->each_mark(MarkKind::kRole, look);
  for (auto& [id, stream] : raw_->streams()) each_raw_mark(*file_, stream, MarkKind::kRole, look);
}

bool RecordedProcess::add_state_before(LiveState* state, ModuleNames* names, Loss* loss) {
  const LiveState* before = sealed_->state_before();
  if (!before) return false;
  const FileIds& ids = sealed_->ids();
  std::vector<uint32_t> stacks = ids.stacks;
  for (uint32_t& stack : stacks) stack = names->named(process_, stack, tables_);
  if (auto done = state->absorb(*before, {stacks, ids.threads, ids.devices}); !done) {
    loss->add(0, 0, file_->path() + ": " + done.error().message);
    return false;
  }
  return true;
}

void RecordedProcess::add_losses(Loss* loss) const {
  const std::string& path = file_->path();
  const std::string file = path.substr(path.rfind('/') + 1);
  add_writer_losses(page_.state, loss);
  if (file_->holding() == Holding::kUnseen) {
    loss->add(LossReason::kUncounted, 0,
              file +
                  ": the last events may be missing: the file was copied while it grew, or every "
                  "process that kept its buffers was killed");
  }
  add_damage(raw_->index().damage, file, loss);
  add_damage(sealed_->losses().damage, file, loss);
  const RawLosses& raw = raw_->losses();
  SealedAway before = sealed_->footer() ? sealed_->footer()->lost : SealedAway{};
  add_counted(loss, raw.damaged_records + before.damaged_records, file, "damaged records");
  if (before.damaged_bytes > 0) {
    loss->add(0, before.damaged_bytes, file + ": parts that were unreadable when it was sealed");
  }
  const MissingEvents missing = missing_events(*file_, page_, *sealed_, *raw_, raw.events);
  add_counted(loss, missing.events, file, missing.reason);
  for (const std::string& why : missing.uncounted) {
    loss->add(LossReason::kUncounted, 0, file + ": " + why);
  }
  add_counted(loss, raw.no_device, file, "more devices than can be distinguished");
  add_counted(loss, raw.no_placement, file, "events with an unknown stream and memory pool");
  auto say = [&](uint64_t count, const char* text) {
    if (count > 0) loss->add(0, 0, file + ": " + std::to_string(count) + text);
  };
  const uint64_t dropped = sealed_->losses().dropped_events;
  const bool is_all = dropped == sealed_->event_count() && raw.events == 0;
  say(dropped, is_all ? " events, all there were, were dropped by --max-disk; live memory, peak and "
                        "totals still include them; a larger limit keeps events, which leaks and "
                        "types of memory are known by"
                      : " events were dropped by --max-disk; live memory, peak and totals still include them");
  say(raw.changed_chunks, " chunks changed while being read; read again");
  say(raw.clamped_times, " events have a time before the previous event");
  say(raw_->damaged_definitions(), " damaged definitions of names or stacks");
  say(raw_->unknown_stacks(), " events refer to a stack that is missing from the file");
  say(raw_->unknown_chunks(), " chunks of a type unknown to this version");
}

}  // namespace gpumemprof
