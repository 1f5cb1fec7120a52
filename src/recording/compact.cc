#include "recording/compact.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/chunk_scan.h"
#include "recording/sealed_payload.h"

namespace gpumemprof {

using namespace format;

namespace {

bool is_kept(const ChunkRef& chunk) {
  const uint16_t type = chunk.header.type;
  return type != kRawEvents && type != kRawDefinitions && type != kStage;
}

Status copy_chunks(File& from, const FileIndex& index, uint64_t recording_id, File& to) {
  uint64_t events = 0;
  uint64_t at = kPage;
  for (const ChunkRef& chunk : index.chunks) {
    if (!is_kept(chunk)) continue;
    auto payload = read_chunk(from, chunk);
    if (!payload) return std::unexpected(payload.error());
    if (chunk.header.type == kFooter) {
      auto footer = parse_footer(*payload);
      if (!footer) return std::unexpected(footer.error());
      events = footer->events;
    }
    if (auto done = to.write_at(at, &chunk.header, sizeof(ChunkHeader)); !done) return done;
    if (auto done = to.write_at(at + sizeof(ChunkHeader), payload->data(), payload->size()); !done)
      return done;
    at += chunk.end() - chunk.offset;
  }
  std::string page(kPage, '\0');
  if (auto got = from.read_at(0, page.data(), page.size()); !got)
    return std::unexpected(got.error());
  memcpy(page.data() + kStateOffset + offsetof(FileState, next_offset), &at, sizeof(at));
  const uint64_t none = 0;
  memcpy(page.data() + kStateOffset + offsetof(FileState, reclaimed_bytes), &none, sizeof(none));
  if (auto done = to.write_at(0, page.data(), page.size()); !done) return done;
  auto size = to.size();
  if (!size) return std::unexpected(size.error());
  return write_finished(to, recording_id, *size, events);
}

/// 0 or errno; ESTALE where `path` names another file than `of`, or none. What is there stays then.
int put_in_place(const std::string& temporary, const std::string& path, const FileIdentity& of) {
  if (!same_file(path, of)) return ESTALE;
  const auto exchange = [&] {
    return renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE);
  };
  if (exchange() != 0) {
    if (errno == ENOENT) return ESTALE;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    return rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  }
  if (!same_file(temporary, of)) {  // it came between the look and the exchange
    exchange();
    return ESTALE;
  }
  unlink(temporary.c_str());
  return 0;
}

}  // namespace

bool same_file(const std::string& path, const FileIdentity& file) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && FileIdentity{st.st_dev, st.st_ino} == file;
}

Result<bool> compact_file(File& file) {
  const std::string temporary = file.path() + ".tmp";
  auto header = read_file_header(file);
  if (!header) return std::unexpected(header.error());
  FileIndex index;
  if (auto done = scan_chunks(file, header->recording_id, &index); !done)
    return std::unexpected(done.error());
  auto size = file.size();
  if (!size) return std::unexpected(size.error());
  uint64_t kept = kPage;
  bool has_footer = false;
  for (const ChunkRef& chunk : index.chunks) {
    if (is_kept(chunk)) kept += chunk.end() - chunk.offset;
    has_footer |= chunk.header.type == kFooter;
  }
  if (!has_footer) return fail(ErrorCode::kBadInput, file.path() + ": not finished");
  if (kept > *size - *size / 5) return false;
  auto to = open_file(temporary, FileMode::kCreate);
  if (!to) return std::unexpected(to.error());
  Status done = copy_chunks(file, index, header->recording_id, **to);
  if (done) done = (*to)->sync();  // the old file must not go before the new one is there
  if (!done) {
    unlink(temporary.c_str());
    return std::unexpected(done.error());
  }
  if (const int error = put_in_place(temporary, file.path(), file.identity()); error != 0) {
    unlink(temporary.c_str());
    if (error == ESTALE) return false;
    return fail(ErrorCode::kSystem, file.path() + ": cannot be replaced: " + strerror(error));
  }
  sync_folder_of(file.path());
  return true;
}

}  // namespace gpumemprof
