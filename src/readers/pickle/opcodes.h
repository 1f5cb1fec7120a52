// The opcodes of Python's pickles (Lib/pickle.py, protocols 2 to 5) that can appear in plain data:
// numbers, text, tuples, lists, dictionaries, and references to them.
#pragma once

#include <cstdint>
#include <string>

namespace gpumemprof::pickle {

enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kDict = 'd',
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kSetItems = 'u',
  kTuple = 't',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

/// What is wrong with an opcode that is not in the list above, in words for an error message: that
/// it makes Python run code, or that it is none.
std::string why_refused(uint8_t opcode);

}  // namespace gpumemprof::pickle
