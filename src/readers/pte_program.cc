// The schema: https://github.com/pytorch/executorch/blob/main/schema/program.fbs, and how a
// flatbuffer lies in memory: https://flatbuffers.dev/internals
#include "readers/pte_program.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace gpumemprof {
namespace {

constexpr uint64_t kMostProgramBytes = (uint64_t{1} << 31) - 1;  // offsets have 32 bits
constexpr uint64_t kMostPlannedBytes = uint64_t{1} << 50;
constexpr size_t kMostMethods = 4096, kMostBuffers = 1 << 16, kMostStringBytes = 1 << 10;

/// Reads numbers at places that a stranger chose. The first that lies outside is kept as the error,
/// and everything is zero from then on.
class Flatbuffer {
 public:
  explicit Flatbuffer(std::string_view bytes) : bytes_(bytes) {}

  uint64_t number(uint64_t at, unsigned size) {
    if (error_ || at > bytes_.size() || bytes_.size() - at < size) {
      refuse(at, "points outside of the program");
      return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i)
      value |= uint64_t{static_cast<uint8_t>(bytes_[at + i])} << (8 * i);
    return value;
  }
  /// The place that an offset at `at` points to.
  uint64_t target(uint64_t at) { return at + number(at, 4); }
  /// The place of a table's field; 0: it has none.
  uint64_t field(uint64_t table, unsigned index) {
    const auto back = static_cast<int32_t>(static_cast<uint32_t>(number(table, 4)));
    const int64_t start = static_cast<int64_t>(table) - back;
    if (start < 0) refuse(table, "points outside of the program");
    if (error_) return 0;
    const auto entries = static_cast<uint64_t>(start);
    if (4 + 2 * uint64_t{index} + 2 > number(entries, 2)) return 0;
    const uint64_t offset = number(entries + 4 + 2 * uint64_t{index}, 2);
    return error_ || offset == 0 ? 0 : table + offset;
  }
  /// Calls take(place) for each element of a vector of `size` bytes each, `most` at most.
  template <class Take>
  void each(uint64_t field, unsigned size, size_t most, Take take) {
    if (field == 0 || error_) return;
    const uint64_t vector = target(field), count = number(vector, 4);
    if (count > most) return refuse(vector, "has more parts than a program can have");
    for (uint64_t i = 0; i < count && !error_; ++i) take(vector + 4 + i * size);
  }
  uint64_t vector_length(uint64_t field) { return field == 0 ? 0 : number(target(field), 4); }
  std::string text(uint64_t field) {
    if (field == 0 || error_) return "";
    const uint64_t at = target(field), size = number(at, 4);
    if (error_ || size > kMostStringBytes || bytes_.size() - at - 4 < size) {
      refuse(at, "has a name that ends outside of the program");
      return "";
    }
    return std::string(bytes_.substr(at + 4, size));
  }
  void refuse(uint64_t at, std::string message) {
    if (!error_) error_ = Error{ErrorCode::kBadInput, std::move(message), at};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string_view bytes_;
  std::optional<Error> error_;
};

void add_bytes(Flatbuffer& buffer, uint64_t at, uint64_t bytes, uint64_t* sum) {
  if (bytes > kMostPlannedBytes - *sum)
    return buffer.refuse(at, "is larger than any machine's memory");
  *sum += bytes;
}

PteMethod read_method(Flatbuffer& buffer, uint64_t table) {
  PteMethod method{buffer.text(buffer.field(table, 0)), {}, {}};
  uint64_t sum = 0;
  buffer.each(buffer.field(table, 8), 8, kMostBuffers, [&](uint64_t at) {
    const uint64_t bytes = buffer.number(at, 8);
    add_bytes(buffer, at, bytes, &sum);
    method.planned_bytes.push_back(bytes);
  });
  // The first is not a buffer: constants are numbered 0.
  if (!method.planned_bytes.empty() && method.planned_bytes[0] == 0)
    method.planned_bytes.erase(method.planned_bytes.begin());
  buffer.each(buffer.field(table, 7), 4, kMostMethods, [&](uint64_t at) {
    std::string name = buffer.text(buffer.field(buffer.target(at), 0));
    if (std::ranges::find(method.delegates, name) == method.delegates.end())
      method.delegates.push_back(std::move(name));
  });
  return method;
}

Result<PteProgram> parse(std::string_view bytes) {
  Flatbuffer buffer(bytes);
  const uint64_t root = buffer.target(0);
  PteProgram program;
  buffer.each(buffer.field(root, 1), 4, kMostMethods, [&](uint64_t at) {
    program.methods.push_back(read_method(buffer, buffer.target(at)));
  });
  // Constants and what delegates are given lie in segments behind the program, or, small, in it.
  buffer.each(buffer.field(root, 4), 4, kMostBuffers, [&](uint64_t at) {
    const uint64_t size = buffer.field(buffer.target(at), 1);
    if (size != 0) add_bytes(buffer, size, buffer.number(size, 8), &program.constant_bytes);
  });
  for (const unsigned inlined : {2u, 3u}) {
    buffer.each(buffer.field(root, inlined), 4, kMostBuffers, [&](uint64_t at) {
      const uint64_t data = buffer.field(buffer.target(at), 0);
      add_bytes(buffer, data, buffer.vector_length(data), &program.constant_bytes);
    });
  }
  if (buffer.error()) return std::unexpected(*buffer.error());
  if (program.methods.empty()) return fail_at(root, "has no method");
  return program;
}

}  // namespace

uint64_t PteMethod::total_planned_bytes() const {
  return std::accumulate(planned_bytes.begin(), planned_bytes.end(), uint64_t{0});
}

Result<PteProgram> read_pte_program(File& file) {
  constexpr size_t kHeader = 32;
  auto size = file.size();
  if (!size) return std::unexpected(size.error());
  std::string head(kHeader, '\0');
  auto got = file.read_at(0, head.data(), head.size());
  if (!got) return std::unexpected(got.error());
  if (*got < kHeader || head.compare(4, 2, "ET") != 0)
    return fail_at(0, "not an ExecuTorch program");
  uint64_t program_bytes = *size;
  // Behind the flatbuffer's own head: how long it is, for segments follow.
  if (head.compare(8, 4, "eh00") == 0)
    program_bytes = std::min(program_bytes, Flatbuffer(head).number(16, 8));
  if (program_bytes > kMostProgramBytes) return fail_at(16, "is larger than a program can be");
  std::string bytes(program_bytes, '\0');
  got = file.read_at(0, bytes.data(), bytes.size());
  if (!got) return std::unexpected(got.error());
  if (*got != bytes.size()) return fail_at(*got, "the file was truncated while being read");
  return parse(bytes);
}

}  // namespace gpumemprof
