#include "readers/pprof/gunzip.h"

#include <zlib.h>

#include <algorithm>

namespace gpumemprof::pprof {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr size_t kStepBytes = 1 << 20;

class Inflater {
 public:
  explicit Inflater(std::string_view compressed) : size_(compressed.size()) {
    // zlib's interface takes no const; it does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
    stream_.avail_in = static_cast<uInt>(compressed.size());
    is_open_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (is_open_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool is_open() const { return is_open_; }
  uint64_t offset() const { return size_ - stream_.avail_in; }
  /// Appends at most `most` bytes; zlib's answer.
  int append(std::string* out, size_t most) {
    const size_t had = out->size();
    out->resize(had + most);
    stream_.next_out = reinterpret_cast<Bytef*>(out->data() + had);
    stream_.avail_out = static_cast<uInt>(most);
    const int answer = inflate(&stream_, Z_NO_FLUSH);
    out->resize(had + most - stream_.avail_out);
    return answer;
  }

 private:
  z_stream stream_{};
  size_t size_;
  bool is_open_ = false;
};

}  // namespace

Result<std::string> gunzip(std::string_view compressed, uint64_t most_bytes) {
  Inflater inflater(compressed);
  if (!inflater.is_open()) return fail(ErrorCode::kSystem, "no memory to decompress the file");
  std::string out;
  while (true) {
    const size_t had = out.size();
    const size_t step = std::min<uint64_t>(kStepBytes, most_bytes + 1 - had);
    const int answer = inflater.append(&out, step);
    if (out.size() > most_bytes) {
      return fail_at(inflater.offset(),
                     "decompresses to more than " + std::to_string(most_bytes) + " bytes");
    }
    if (answer == Z_STREAM_END) break;
    if (answer == Z_MEM_ERROR) return fail(ErrorCode::kSystem, "no memory to decompress the file");
    if (answer != Z_OK && answer != Z_BUF_ERROR) {
      return fail_at(inflater.offset(), "the compressed data is damaged");
    }
    if (out.size() == had) return fail_at(inflater.offset(), "the compressed data is truncated");
  }
  if (inflater.offset() != compressed.size()) {
    return fail_at(inflater.offset(), "extra bytes after the compressed data");
  }
  return out;
}

std::string gunzip_beginning(std::string_view compressed, size_t most_bytes) {
  std::string out;
  if (!is_gzip(compressed)) return out;
  Inflater inflater(compressed);
  if (inflater.is_open()) inflater.append(&out, most_bytes);
  return out;
}

}  // namespace gpumemprof::pprof
