#include "readers/oom_message.h"

#include <algorithm>

#include "base/shell_word.h"

namespace gpumemprof {
namespace {

constexpr size_t kBefore = 96;    // in front of the key words: the backend, a rank
constexpr size_t kContext = 4096;  // in front of them: a traceback's innermost lines
constexpr size_t kWindow = 8192;  // from the key words on: the longest message has 40 processes
constexpr size_t kHead = 96;      // enough to tell the key words however they are wrapped
constexpr size_t kKeep = 4 * kWindow;
constexpr std::string_view kExpandableOn = "expandable_segments:True";

std::vector<OomDialect> dialects() {
  return {pytorch_oom_dialect(), tensorflow_oom_dialect(), kernel_oom_dialect(),
          numpy_oom_dialect(), shared_memory_oom_dialect()};
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Bytes of what is no word at `at`: a colour, a border of a box, an escaped line break.
size_t decoration(std::string_view text, size_t at, bool at_line_start) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("\x1b[")) {
    const size_t end = rest.find_first_not_of("0123456789;", 2);
    return end == std::string_view::npos ? rest.size() : end + 1;
  }
  for (std::string_view border : {"\xe2\x94\x82", "\xe2\x94\x83", "\xe2\x95\x91"}) {  // │ ┃ ║
    if (rest.starts_with(border)) return border.size();
  }
  if (rest.starts_with("\\n")) return 2;
  if (at_line_start && (rest[0] == '#' || rest[0] == '>' || rest[0] == '|' || rest[0] == '*')) {
    return 1;
  }
  if (at_line_start && rest.starts_with("[rank")) {
    const size_t end = rest.find("]:");
    if (end != std::string_view::npos && end < 16) return end + 2;
  }
  return 0;
}

/// One line of words with single spaces, so that a message reads the same however it was wrapped.
std::string unwrapped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool at_line_start = false, pending_space = false;
  for (size_t i = 0; i < text.size();) {
    if (is_space(text[i])) {
      at_line_start = at_line_start || text[i] == '\n';
      pending_space = true;
      ++i;
      continue;
    }
    if (const size_t skipped = decoration(text, i, at_line_start); skipped != 0) {
      pending_space = pending_space || text[i] != '\x1b';
      at_line_start = at_line_start || text[i] == '\\';
      i += skipped;
      continue;
    }
    if (pending_space && !out.empty()) out += ' ';
    pending_space = at_line_start = false;
    out += text[i++];
  }
  return out;
}

/// A rank that the line of the message begins with: "[rank3]:", "[3]:", "rank 3:", "(… rank=3 …".
std::optional<uint64_t> rank_of_line(std::string_view line) {
  for (std::string_view key : {"[rank", "rank=", "rank ", "Rank ", "["}) {
    const size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    size_t end = at + key.size();
    uint64_t rank = 0;
    const size_t first = end;
    while (end < line.size() && line[end] >= '0' && line[end] <= '9' && end - first < 6) {
      rank = rank * 10 + static_cast<uint64_t>(line[end++] - '0');
    }
    if (end == first || end == line.size()) continue;
    const bool closed = line[end] == ']' && end + 1 < line.size() && line[end + 1] == ':';
    if (key.starts_with('[') ? closed : (line[end] == ' ' || line[end] == ':' || line[end] == ')'))
      return rank;
  }
  return std::nullopt;
}

/// Whether it is said from `begin` on that they are on; the message's own advice is no such word.
bool says_expandable_is_on(std::string_view text, size_t begin) {
  for (size_t at = begin; (at = text.find(kExpandableOn, at)) != std::string_view::npos; ++at) {
    const size_t from = at < kBefore ? 0 : at - kBefore;
    const std::string before = unwrapped(text.substr(from, at - from));
    const size_t space = before.rfind(' ');
    if (!before.ends_with("_ALLOC_CONF=") || space == std::string::npos) return true;
    if (!std::string_view(before).substr(0, space).ends_with("try setting")) return true;
  }
  return false;
}

/// The command that `line` is, without the tool's folder, if it is one of ours with one word after
/// it that no shell reads as more: what a log says is typed by whoever reads it.
std::string analyze_command_in(std::string_view line) {
  line = line.substr(0, line.find_first_of("\r\n"));
  const std::string_view path = line.substr(0, line.find(' '));
  line.remove_prefix(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
  for (std::string_view tool : {"gpumemprof analyze ", "tfmemprof analyze "}) {
    if (!line.starts_with(tool)) continue;
    const std::string_view word = line.substr(tool.size());
    const bool is_plain = is_plain_shell_word(word) && !word.starts_with('-');
    const bool is_quoted = word.size() > 2 && word.starts_with('\'') && word.ends_with('\'') &&
                           word.find('\'', 1) == word.size() - 1;
    if (is_plain || is_quoted) return std::string(line);
  }
  return "";
}

bool same_message(const OomMessage& a, const OomMessage& b) {
  const auto same = [](const std::optional<PrintedSize>& x, const std::optional<PrintedSize>& y) {
    return x.has_value() == y.has_value() && (!x || x->text == y->text);
  };
  return a.wording == b.wording && a.backend == b.backend && a.rank == b.rank &&
         a.is_own_limit == b.is_own_limit &&
         a.device == b.device && same(a.requested, b.requested) && same(a.capacity, b.capacity) &&
         same(a.free, b.free) && same(a.allocated, b.allocated) &&
         same(a.unallocated, b.unallocated) && same(a.reserved, b.reserved) &&
         same(a.allowed, b.allowed) && same(a.process_in_use, b.process_in_use) &&
         a.processes.size() == b.processes.size() && a.allocator == b.allocator &&
         a.operation == b.operation && a.shape == b.shape && a.type == b.type &&
         a.is_no_failure == b.is_no_failure;
}

bool may_begin(const OomDialect& dialect, std::string_view text) {
  const std::string head = unwrapped(text.substr(0, kHead));
  return std::any_of(dialect.beginnings.begin(), dialect.beginnings.end(),
                     [&](std::string_view beginning) { return head.starts_with(beginning); });
}

/// How far the message at `begin` may reach: to the next one at most, so that a log that is nothing
/// but beginnings is not read again for each.
std::string_view window_of(std::string_view all, size_t begin, std::string_view key,
                           const OomDialect& dialect) {
  const std::string_view window = all.substr(begin, kWindow);
  for (size_t at = 1; (at = window.find(key, at)) != std::string_view::npos; ++at) {
    if (may_begin(dialect, window.substr(at))) return window.substr(0, at);
  }
  return window;
}

}  // namespace

const char* wording_name(OomWording wording) {
  switch (wording) {
    case OomWording::kPyTorch1:
      return "pytorch 1";
    case OomWording::kPyTorch2:
      return "pytorch 2";
    case OomWording::kPyTorchAsync:
      return "pytorch cudaMallocAsync";
    case OomWording::kPyTorchMps:
      return "pytorch mps";
    case OomWording::kPyTorchCpu:
      return "pytorch cpu";
    case OomWording::kNumpy:
      return "numpy";
    case OomWording::kTensorflowPool:
      return "tensorflow pool";
    case OomWording::kTensorflowTensor:
      return "tensorflow tensor";
    case OomWording::kTensorflowDump:
      return "tensorflow memory dump";
    case OomWording::kXla:
      return "xla";
    case OomWording::kKernel:
      return "kernel";
    case OomWording::kKilled:
      return "killed";
    case OomWording::kSharedMemory:
      return "shared memory";
    case OomWording::kWithoutNumbers:
      return "without numbers";
  }
  return "unknown";
}

void OomScanner::feed(std::string_view piece) {
  log_.bytes_read += piece.size();
  pools_.feed(piece);
  while (!piece.empty()) {
    const size_t taken = std::min(piece.size(), kKeep);
    buffer_ += piece.substr(0, taken);
    piece.remove_prefix(taken);
    // A look goes over all that is there, so small pieces are put together first.
    if (buffer_.size() >= kKeep + kWindow) scan(false);
  }
}

OomLog OomScanner::finish() {
  scan(true);
  join_tensorflow_messages();
  // A code or signal beside what says why the process was killed tells nothing more.
  const auto is_kill = [](const OomMessage& one) { return one.framework == "kernel"; };
  const auto is_bare = [](const OomMessage& one) {
    return one.wording == OomWording::kKilled && !one.is_own_limit;
  };
  const bool has_reason = std::ranges::any_of(
      log_.messages, [&](const OomMessage& one) { return is_kill(one) && !is_bare(one); });
  if (has_reason) std::erase_if(log_.messages, is_bare);
  return std::move(log_);
}

void OomScanner::take(OomMessage message) {
  log_.expandable_segments_on |= message.expandable_segments_on;
  for (OomMessage& known : log_.messages) {
    if (!same_message(known, message)) continue;
    ++known.times;
    if (known.asked_at.file.empty()) known.asked_at = std::move(message.asked_at);
    return;
  }
  if (log_.messages.size() < kMaxOomMessages) {
    log_.messages.push_back(std::move(message));
  } else {
    ++log_.more_messages;
  }
}

/// From done_ to `ready`: the last summary counts.
void OomScanner::look_for_summary(size_t ready) {
  constexpr std::string_view kNext = "memprof: Next: ";
  const std::string_view all = buffer_;
  for (size_t at = done_; (at = all.find(kNext, at)) < ready; at += kNext.size()) {
    std::string command = analyze_command_in(all.substr(at + kNext.size(), kWindow - kBefore));
    if (!command.empty()) log_.analyze_command = std::move(command);
  }
}

/// Looks at every place whose window is complete, then lets go of what is behind it. Linear in the
/// log, whatever is in it: every key is looked for once from each place on, lines are counted on
/// from the last message, and a window ends where the next one begins.
void OomScanner::scan(bool is_end) {
  struct Hit {
    const OomDialect* dialect;
    std::string_view key;
    size_t at;  // the first one at or behind done_, `ready` where there is none
  };
  static const std::vector<OomDialect> kDialects = dialects();
  const std::string_view all = buffer_;
  const size_t ready = is_end ? all.size() : all.size() > kWindow ? all.size() - kWindow : 0;
  const auto first_of = [&](std::string_view key) {
    return std::min(ready, all.substr(0, ready + key.size()).find(key, done_));
  };
  look_for_summary(ready);
  std::vector<Hit> hits;
  for (const OomDialect& dialect : kDialects) {
    for (std::string_view key : dialect.keys) hits.push_back({&dialect, key, first_of(key)});
  }
  size_t counted = 0;
  uint64_t lines = lines_before_;
  while (done_ < ready && !hits.empty()) {
    for (Hit& hit : hits) {
      if (hit.at < done_) hit.at = first_of(hit.key);
    }
    const Hit& hit = *std::ranges::min_element(hits, {}, &Hit::at);
    const size_t next = hit.at;
    done_ = next < ready ? next + 1 : ready;
    if (next == ready) break;
    if (!may_begin(*hit.dialect, all.substr(next))) continue;
    const size_t from = next < kBefore ? 0 : next - kBefore;
    const std::string_view before = all.substr(from, next - from);
    const std::string_view window = window_of(all, next, hit.key, *hit.dialect);
    std::string text = unwrapped(window);
    // A word that is followed by something is whole; one that ends the text may be cut off.
    if (std::string_view(" \t\r\n").contains(window.back())) text += ' ';
    auto message = hit.dialect->parse(unwrapped(before), text);
    if (!message) continue;
    lines += static_cast<uint64_t>(std::ranges::count(all.substr(counted, next - counted), '\n'));
    counted = next;
    message->offset = buffer_offset_ + next;
    message->line = 1 + lines;
    // No further back than is always kept, so that pieces of any size give the same answer.
    const size_t line_start = before.rfind('\n');
    if (!message->rank)
      message->rank =
          rank_of_line(before.substr(line_start == std::string_view::npos ? 0 : line_start + 1));
    const size_t context = next < kContext ? 0 : next - kContext;
    message->asked_at = traceback_line(all.substr(context, next - context));
    take(std::move(*message));
  }
  // What begins in front of that was whole, with its context, in the buffer before.
  const size_t unseen = buffer_offset_ == 0 ? 0 : kBefore;
  if (!log_.expandable_segments_on) {
    log_.expandable_segments_on = says_expandable_is_on(all, unseen);
  }
  const size_t keep_from = done_ < kContext ? 0 : done_ - kContext;
  if (keep_from < kWindow && !is_end) return;  // not worth a move yet
  lines_before_ += static_cast<uint64_t>(
      std::count(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(keep_from), '\n'));
  buffer_.erase(0, keep_from);
  buffer_offset_ += keep_from;
  done_ -= keep_from;
}

}  // namespace gpumemprof
