// Offsets in CPython's structures. 3.9 to 3.12 from the headers (Include/cpython/{frameobject,code,
// unicodeobject}.h, Include/internal/pycore_frame.h); from 3.13 on the interpreter publishes most of
// them itself in _Py_DebugOffsets, at the beginning of _PyRuntime.
#include <string.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {
namespace {

constexpr PythonLayout kPython310 = {.tstate_frame = 24,
                                     .places = PlaceKind::kPacked,
                                     .frame_previous = 24,
                                     .frame_code = 32,
                                     .frame_instruction = 96,
                                     .frame_owner = 0,
                                     .frame_locals = 352,
                                     .skip_owner = 256,  // every frame is one of Python code
                                     .code_first_line = 40,
                                     .code_filename = 104,
                                     .code_qualname = 112,  // co_name: there is no other
                                     .code_line_table = 120,
                                     .code_bytes = 48,
                                     .lines = LineTable::kLines,
                                     .code_local_count = 28,
                                     .code_cells = 88,
                                     .code_cell_arguments = 96,
                                     .str_ascii_data = 48,
                                     .str_compact_data = 72};

constexpr PythonLayout python39() {
  PythonLayout layout = kPython310;
  layout.frame_instruction = 104;
  layout.frame_locals = 360;
  layout.lines = LineTable::kNumbers;
  return layout;
}

constexpr PythonLayout kPython311 = {.tstate_frame = 56,
                                     .cframe_frame = 8,
                                     .through_cframe = true,
                                     .frame_previous = 48,
                                     .frame_code = 32,
                                     .frame_instruction = 56,
                                     .frame_owner = 69,
                                     .frame_locals = 72,
                                     .skip_owner = 255,
                                     .code_first_line = 72,
                                     .code_filename = 112,
                                     .code_qualname = 128,
                                     .code_line_table = 136,
                                     .code_bytes = 184,
                                     .str_ascii_data = 48,
                                     .str_compact_data = 72};

constexpr PythonLayout kPython312 = {.tstate_frame = 56,
                                     .cframe_frame = 0,
                                     .through_cframe = true,
                                     .frame_previous = 8,
                                     .frame_code = 0,
                                     .frame_instruction = 56,
                                     .frame_owner = 70,
                                     .frame_locals = 72,
                                     .skip_owner = 3,
                                     .code_first_line = 68,
                                     .code_filename = 112,
                                     .code_qualname = 128,
                                     .code_line_table = 136,
                                     .code_bytes = 192,
                                     .str_ascii_data = 40,
                                     .str_compact_data = 56};

/// The words of _Py_DebugOffsets: cookie, version, free_threaded, then a group a structure whose
/// first word is its size. The groups before ours grew between the versions, so their lengths are
/// data.
struct DebugGroups {
  uint32_t interpreter_words, frame_words;
  bool has_copies;  // threads run copies of the code where there is no GIL
};

/// Objects of a free-threaded interpreter: a head of 32 bytes with ob_type last instead of 16
/// (Include/object.h), and a byte for `interned` in the state of a str from 3.14 on.
void without_gil(const uint64_t* frame, const uint64_t* code, bool has_copies, PythonLayout* out) {
  constexpr uint32_t kLonger = 16;
  uint32_t* const offsets[] = {&out->str_length,       &out->str_state,  &out->str_ascii_data,
                               &out->str_compact_data, &out->bytes_size, &out->bytes_data,
                               &out->object_type,      &out->object_size};
  for (uint32_t* offset : offsets) *offset += kLonger;
  out->places = PlaceKind::kWithCode;
  if (!has_copies) return;
  out->str_kind_bit = 8;
  out->frame_copy = static_cast<uint32_t>(frame[7]);
  out->code_copies = static_cast<uint32_t>(code[10]);
}

bool self_described(const uint64_t* words, DebugGroups groups, PythonLayout* out) {
  if (!words || memcmp(words, "xdebugpy", 8) != 0) return false;
  const uint64_t* thread = words + 3 + 3 + groups.interpreter_words;
  const uint64_t* frame = thread + 9;
  const uint64_t* code = frame + groups.frame_words;
  *out = kPython312;
  out->through_cframe = false;
  out->tstate_frame = static_cast<uint32_t>(thread[4]);
  out->frame_previous = static_cast<uint32_t>(frame[1]);
  out->frame_code = static_cast<uint32_t>(frame[2]);
  out->frame_instruction = static_cast<uint32_t>(frame[3]);
  out->frame_locals = static_cast<uint32_t>(frame[4]);
  out->frame_owner = static_cast<uint32_t>(frame[5]);
  out->code_filename = static_cast<uint32_t>(code[1]);
  out->code_qualname = static_cast<uint32_t>(code[3]);
  out->code_line_table = static_cast<uint32_t>(code[4]);
  out->code_first_line = static_cast<uint32_t>(code[5]);
  out->code_bytes = static_cast<uint32_t>(code[9]);
  if (words[2] != 0) without_gil(frame, code, groups.has_copies, out);
  // An offset outside these bounds means that the groups are not where we think.
  return thread[4] > 0 && thread[4] < 1024 && frame[1] < 128 && frame[3] < 128 && frame[4] < 128 &&
         frame[5] < 128 && code[1] < 512 && code[3] < 512 && code[4] < 512 && code[9] < 1024 &&
         out->frame_copy < 128 && out->code_copies < 1024;
}

}  // namespace

bool python_layout(uint32_t major, uint32_t minor, const uint64_t* debug_offsets,
                   PythonLayout* out) {
  if (major != 3) return false;
  if (minor == 9) return *out = python39(), true;
  if (minor == 10) return *out = kPython310, true;
  if (minor == 11) return *out = kPython311, true;
  if (minor == 12) return *out = kPython312, true;
  if (minor == 13) return self_described(debug_offsets, {13, 6, false}, out);
  if (minor == 14) return self_described(debug_offsets, {16, 8, true}, out);
  return false;
}

}  // namespace gpumemprof::probe
