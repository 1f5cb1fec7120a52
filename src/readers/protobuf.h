// Fields of protobuf messages that strangers wrote. The decoding is protozero's; this keeps its
// exceptions in, checks what it takes on trust (lengths of more than 32 bits, the wire type of a
// field) and knows at which byte of the file it stands.
#pragma once

#include <cstdint>
#include <optional>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace gpumemprof {

/// What may still be kept of a file. A message of two bytes can be repeated by the million, so a
/// reader takes from here for everything that it keeps.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : left_bytes_(bytes) {}
  /// False where it does not suffice; nothing is taken then.
  bool take(uint64_t bytes) {
    if (bytes > left_bytes_) return false;
    left_bytes_ -= bytes;
    return true;
  }

 private:
  uint64_t left_bytes_;
};

/// Protobuf itself refuses messages of 2 GiB and more.
inline constexpr uint64_t kMostProtobufBytes = (uint64_t{1} << 31) - 1;

/// Walks over the fields of one message; owns nothing. Nothing throws: the first mistake ends the
/// walk and is told by status(), which is to be asked once behind it.
///
///     ProtobufFields fields(bytes);
///     while (fields.next()) {
///       if (fields.number() == 3) total = fields.unsigned_integer();
///       if (fields.number() == 4) read_line(fields.message());
///     }
///     if (auto status = fields.status(); !status) return std::unexpected(status.error());
///
/// What is not requested is passed over whatever its type is, and never looked into, so that depth
/// of nesting costs nothing. A getter that does not fit the field's wire type is a mistake of the
/// file and answers 0 or nothing. Groups, which proto3 does not have, are one as well.
class ProtobufFields {
 public:
  /// `offset` is the place in the file of the message's first byte.
  explicit ProtobufFields(std::string_view message, uint64_t offset = 0)
      : begin_(message.data()),
        at_(message.data()),
        end_(message.data() + message.size()),
        base_offset_(offset) {}

  /// Goes to the next field. False at the end, and from the first mistake on.
  bool next() {
    if (error_ || at_ == end_) return false;
    field_ = at_;
    const uint64_t tag = varint();
    const uint64_t number = tag >> 3;
    if (error_) return false;
    if (number == 0 || number > kMostFieldNumber) return wrong(field_, "not a protobuf field");
    number_ = static_cast<uint32_t>(number);
    type_ = static_cast<Type>(tag & 7);
    value_at_ = at_;
    if (type_ == Type::varint) {
      integer_ = varint();
    } else if (type_ == Type::fixed64) {
      integer_ = little_endian(8);
    } else if (type_ == Type::fixed32) {
      integer_ = little_endian(4);
    } else if (type_ == Type::length_delimited) {
      take_bytes();
    } else {
      return wrong(field_, "a protobuf field of unknown wire type " + std::to_string(tag & 7));
    }
    return !error_;
  }

  uint32_t number() const { return number_; }
  /// Place in the file of the field, and of the first byte of its value.
  uint64_t offset() const { return offset_of(field_); }
  uint64_t value_offset() const { return offset_of(value_at_); }

  uint64_t unsigned_integer() { return expect(Type::varint) ? integer_ : 0; }
  int64_t signed_integer() { return static_cast<int64_t>(unsigned_integer()); }
  bool boolean() { return unsigned_integer() != 0; }
  double float64() { return expect(Type::fixed64) ? __builtin_bit_cast(double, integer_) : 0.0; }
  /// Strings and bytes; nothing says that a string is UTF-8.
  std::string_view bytes() { return expect(Type::length_delimited) ? bytes_ : std::string_view(); }
  ProtobufFields message() { return ProtobufFields(bytes(), value_offset()); }
  /// Calls `take` with every integer of a repeated field, packed or one by one.
  template <class Take>
  void integers(Take take) {
    if (type_ == Type::varint) return take(integer_);
    ProtobufFields packed(bytes(), value_offset());
    while (!packed.error_ && packed.at_ != packed.end_) {
      const uint64_t value = packed.varint();
      if (!packed.error_) take(value);
    }
    if (packed.error_) error_ = std::move(packed.error_);
  }

  /// The walk's first mistake: kBadInput with its byte.
  Status status() const {
    if (error_) return std::unexpected(*error_);
    return {};
  }
  /// Ends the walk with an error at the current field, for what a reader finds wrong in it.
  void refuse(std::string message) { wrong(field_, std::move(message)); }

 private:
  using Type = protozero::pbf_wire_type;
  static constexpr uint64_t kMostFieldNumber = (1u << 29) - 1;

  uint64_t offset_of(const char* at) const {
    return base_offset_ + static_cast<uint64_t>(at - begin_);
  }
  bool wrong(const char* at, std::string message) {
    if (!error_) error_ = Error{ErrorCode::kBadInput, std::move(message), offset_of(at)};
    at_ = end_;
    return false;
  }
  bool expect(Type type) {
    if (type_ == type) return true;
    return wrong(field_, "protobuf field " + std::to_string(number_) + " has wire type " +
                             std::to_string(static_cast<uint32_t>(type_)) + ", expected " +
                             std::to_string(static_cast<uint32_t>(type)));
  }
  uint64_t varint() {
    const char* at = at_;
    try {
      const uint64_t value = protozero::decode_varint(&at, end_);
      at_ = at;
      return value;
    } catch (const protozero::end_of_buffer_exception&) {
      wrong(at_, "a protobuf number is truncated");
    } catch (const protozero::exception&) {
      wrong(at_, "a protobuf number longer than 10 bytes");
    }
    return 0;
  }
  uint64_t little_endian(unsigned size) {
    uint64_t value = 0;
    if (static_cast<size_t>(end_ - at_) < size) {
      wrong(at_, "a protobuf field is truncated");
      return 0;
    }
    for (unsigned i = 0; i < size; ++i) {
      value |= uint64_t{static_cast<uint8_t>(at_[i])} << (8 * i);
    }
    at_ += size;
    return value;
  }
  void take_bytes() {
    const uint64_t size = varint();
    if (error_) return;
    if (const auto left = static_cast<uint64_t>(end_ - at_); size > left) {
      wrong(value_at_, "a protobuf field of " + std::to_string(size) + " bytes where " +
                           std::to_string(left) + " are left");
      return;
    }
    value_at_ = at_;
    bytes_ = std::string_view(at_, size);
    at_ += size;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  uint64_t base_offset_;
  const char* field_ = begin_;
  const char* value_at_ = begin_;
  uint32_t number_ = 0;
  Type type_ = Type::unknown;
  uint64_t integer_ = 0;
  std::string_view bytes_;
  std::optional<Error> error_;
};

/// A protobuf file, all of it: what is referred to stands behind what refers to it, so two walks
/// are needed. Not mapped, because a file that is cut short meanwhile must end in an error, not in
/// a signal. Errors: kSystem; kBadInput where it is larger than protobuf allows, or shrank.
inline Result<std::string> read_protobuf_file(File& file) {
  auto size = file.size();
  if (!size) return std::unexpected(size.error());
  if (*size > kMostProtobufBytes) {
    return fail_at(kMostProtobufBytes, "larger than 2 GiB, the limit of a protobuf message");
  }
  std::string bytes(*size, '\0');
  auto got = file.read_at(0, bytes.data(), bytes.size());
  if (!got) return std::unexpected(got.error());
  if (*got != *size) return fail_at(*got, "the file was truncated while being read");
  return bytes;
}

}  // namespace gpumemprof
