#include "readers/bfc_dump/read.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <string>

#include "base/varint.h"
#include "readers/bfc_limits.h"
#include "readers/protobuf.h"

namespace gpumemprof {
namespace {

// Numbers of fields: bfc_memory_map.proto.
enum DumpField : uint32_t { kAllocator = 1, kBin = 2, kChunk = 3, kStatistics = 5 };
enum ChunkField : uint32_t { kAddress = 1, kSize = 2, kRequested = 3, kOperation = 5, kInUse = 8 };
enum StatisticsField : uint32_t { kAllocations = 1, kBytesInUse = 2, kPeak = 3, kLargest = 4 };

constexpr size_t kDumpPrefixBytes = 512;

class DumpReader {
 public:
  Result<BfcPool> read(std::string_view bytes) {
    ProtobufFields dump(bytes);
    while (dump.next()) {
      Status done;
      switch (dump.number()) {
        case kAllocator:
          pool_.allocator = dump.bytes().substr(0, kMostBfcNameBytes);
          break;
        case kChunk:
          done = read_chunk(dump.message());
          break;
        case kStatistics:
          done = read_statistics(dump.message());
          break;
        default:
          break;  // bins are sums over chunks, snapshots need a build for debugging
      }
      if (!done) return std::unexpected(done.error());
      if (pool_.chunks.size() > kMostBfcChunks)
        return fail_at(dump.offset(), "more than 1,048,576 chunks");
    }
    if (auto status = dump.status(); !status) return std::unexpected(status.error());
    if (pool_.chunks.empty()) return fail_at(bytes.size(), "a memory dump without chunks");
    uint64_t requested = 0;
    for (const BfcChunk& chunk : pool_.chunks) requested += chunk.requested_bytes.value_or(0);
    pool_.requested = exact_size(requested);
    pool_.is_complete = true;
    return std::move(pool_);
  }

 private:
  Status read_chunk(ProtobufFields fields) {
    BfcChunk chunk;
    uint64_t requested = 0;
    const uint64_t offset = fields.offset();
    while (fields.next()) {
      if (fields.number() == kAddress) chunk.address = fields.unsigned_integer();
      if (fields.number() == kSize) chunk.size_bytes = fields.unsigned_integer();
      if (fields.number() == kRequested) requested = fields.unsigned_integer();
      if (fields.number() == kInUse) chunk.in_use = fields.boolean();
      if (fields.number() == kOperation) chunk.operation = operation(fields.bytes());
    }
    if (auto status = fields.status(); !status) return status;
    // The sum of all must not wrap either: chunks are pieces of one address space.
    total_bytes_ += std::min(chunk.size_bytes, kMostBfcBytes);
    if (chunk.size_bytes > kMostBfcBytes || total_bytes_ > kMostBfcBytes) {
      return fail_at(offset, "chunk sizes exceed the address space");
    }
    // Of a free chunk it is what its last user had asked for.
    if (chunk.in_use) chunk.requested_bytes = std::min(requested, chunk.size_bytes);
    pool_.chunks.push_back(chunk);
    return {};
  }

  Status read_statistics(ProtobufFields fields) {
    while (fields.next()) {
      if (fields.number() == kAllocations) pool_.allocations = fields.unsigned_integer();
      if (fields.number() == kBytesInUse) pool_.in_use = size_of(fields);
      if (fields.number() == kPeak) pool_.peak_in_use = size_of(fields);
      if (fields.number() == kLargest) pool_.largest_allocation = size_of(fields);
    }
    return fields.status();
  }
  static PrintedSize size_of(ProtobufFields& field) {
    return exact_size(std::min(field.unsigned_integer(), kMostBfcBytes));
  }

  uint32_t operation(std::string_view name) {
    name = name.substr(0, kMostBfcNameBytes);
    if (name.empty() || name == "UNKNOWN") return 0;
    auto known = operations_.find(name);
    if (known != operations_.end()) return known->second;
    if (operations_.size() == kMostBfcOperations) return 0;
    const auto index = static_cast<uint32_t>(pool_.operations.size());
    pool_.operations.emplace_back(name);
    operations_.emplace(name, index);
    return index;
  }

  BfcPool pool_;
  uint64_t total_bytes_ = 0;
  absl::flat_hash_map<std::string_view, uint32_t> operations_;  // views of the file's bytes
};

}  // namespace

Result<BfcPool> read_bfc_dump(File& file) {
  auto bytes = read_protobuf_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  return DumpReader().read(*bytes);
}

bool looks_like_bfc_dump(std::string_view bytes) {
  ByteReader reader(bytes.substr(0, kDumpPrefixBytes));
  if (reader.varint() != 0x0a) return false;  // field 1, text
  const std::string_view name = reader.text();
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c <= '~' && c != '/' && c != '{';
  });
  if (!is_name || reader.varint() != 0x12) return false;  // field 2, the first bin
  ByteReader bin(reader.text());
  uint64_t last = 0;  // five fields, all of them numbers
  while (bin.ok() && !bin.at_end()) {
    const uint64_t tag = bin.varint();
    if ((tag & 7) != 0 || tag >> 3 <= last || tag >> 3 > 5) return false;
    last = tag >> 3;
    bin.varint();
  }
  return reader.ok() && bin.ok();
}

bool is_bfc_dump(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return false;
  std::string prefix(kDumpPrefixBytes, '\0');
  auto got = (*file)->read_at(0, prefix.data(), prefix.size());
  return got && looks_like_bfc_dump(std::string_view(prefix).substr(0, *got));
}

}  // namespace gpumemprof
