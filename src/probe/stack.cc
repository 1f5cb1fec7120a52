// From the thread's frames to a stack id: a hash and a look into the cache; on a miss the
// definitions.
#include <string.h>

#include "probe/code_identity.h"
#include "probe/hot.h"
#include "probe/modules.h"
#include "probe/native_stack.h"
#include "probe/package.h"
#include "probe/phases.h"
#include "probe/python_code.h"
#include "probe/python_frames.h"
#include "probe/stream.h"
#include "probe/surroundings.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

constexpr int kProbes = 4;
constexpr uint32_t kUnknownFrame = 0;

uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Sixteen bytes at a time; the last ones overlap those before, so nothing is copied by length.
/// It is hashed for every event that has a label.
uint64_t hash_bytes(const char* text, size_t length) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u, kOther = 0xd6e8feb86659fd93u;
  uint64_t hash = length * kOdd + 1;
  if (length < 8) {
    uint64_t word = 0;
    for (size_t i = 0; i < length; ++i) word = word << 8 | static_cast<uint8_t>(text[i]);
    return mix(hash ^ fold(word ^ kOther, kOdd));
  }
  const char* const last = text + length - 8;
  for (; text + 16 <= last + 8; text += 16) {
    hash = fold(load<uint64_t>(text, 0) ^ hash, load<uint64_t>(text, 8) ^ kOther);
  }
  const uint64_t left = text < last ? load<uint64_t>(text, 0) : 0;
  return mix(fold(hash ^ left, load<uint64_t>(last, 0) ^ kOther) ^ hash);
}

/// The slot of `hash` among kProbes neighbours, or the one to overwrite. `*hit` tells which.
template <class Slot, class Match, class Empty>
Slot* find_slot(Slot* slots, uint32_t mask, uint64_t hash, Match match, Empty empty, bool* hit) {
  uint32_t first = static_cast<uint32_t>(hash) & mask;
  for (int i = 0; i < kProbes; ++i) {
    Slot* slot = &slots[(first + i) & mask];
    if (match(*slot)) return *hit = true, slot;
    if (empty(*slot)) return *hit = false, slot;
  }
  *hit = false;
  return &slots[(first + (hash >> 60) % kProbes) & mask];
}

}  // namespace

uint32_t define_string(Stream* s, const char* text, size_t length) {
  Caches* c = s->caches;
  uint64_t hash = hash_bytes(text, length) | 1;
  bool hit;
  CachedString* slot = find_slot(
      c->strings, kStringSlots - 1, hash >> 8, [&](auto& e) { return e.hash == hash; },
      [](auto& e) { return e.hash == 0; }, &hit);
  if (hit) return static_cast<uint32_t>(slot->id);
  char body[4 + kMaxString];
  uint32_t id = c->next_string;
  memcpy(body, &id, 4);
  memcpy(body + 4, text, length);
  if (!define(s, kDefString, body, 4 + length)) return 0;
  c->next_string += 1;
  *slot = {hash, id};
  return id;
}

size_t length_of_text(const char* text, size_t most) {
  size_t length = strnlen(text, most);
  if (length < most || text[length] == 0) return length;
  // Of UTF-8 the bytes that are not a character's first begin with 10.
  const size_t cut = length;
  while (length && (text[length] & 0xc0) == 0x80 && cut - length < 4) --length;
  return length;
}

uint64_t hash_text(const char* text, size_t length, uint64_t seed) {
  return mix(hash_bytes(text, length) ^ seed) | 1;
}

namespace {

uint32_t define_frame(Stream* s, uint32_t file, uint32_t function, uint32_t line) {
  const uint32_t body[4] = {s->caches->next_frame, file, function, line};
  if (!define(s, kDefFrame, body, sizeof(body))) return kUnknownFrame;
  return s->caches->next_frame++;
}

/// A stack that is too deep keeps both ends; this frame between them says how many are not there.
uint32_t define_cut(Stream* s, uint32_t left_out) {
  char text[64] = "[";
  size_t n = 1;
  char digits[12];
  int d = 0;
  do digits[d++] = static_cast<char>('0' + left_out % 10);
  while (left_out /= 10);
  while (d--) text[n++] = digits[d];
  const char rest[] = " frames not recorded]";
  memcpy(text + n, rest, sizeof(rest) - 1);
  return define_frame(s, 0, define_string(s, text, n + sizeof(rest) - 1), 0);
}

/// The strings of a code object; read again where another one lives at its address.
CachedCode* code_names(Stream* s, const char* code, uint32_t generation) {
  Caches* c = s->caches;
  uint64_t key = reinterpret_cast<uintptr_t>(code);
  bool hit;
  CachedCode* slot = find_slot(
      c->codes, kCodeSlots - 1, code_hash(code),
      [&](auto& e) { return e.code == key && e.generation == generation; },
      [](auto& e) { return e.code == 0; }, &hit);
  if (hit) return slot;
  char text[kMaxString];
  const PythonLayout& layout = g_python.layout;
  size_t n =
      python_string(layout, load<const void*>(code, layout.code_filename), text, sizeof(text));
  uint32_t file = define_string(s, text, n);
  n = python_string(layout, load<const void*>(code, layout.code_qualname), text, sizeof(text));
  uint32_t function = define_string(s, text, n);
  *slot = {key, generation, file, function, 0};
  if (!file || !function) slot->code = 0;  // not remembered: the file refused
  return slot;
}

uint32_t python_frame(Stream* s, const char* frame) {
  const PythonLayout& layout = g_python.layout;
  const char* code = code_of(frame);
  if (!code) return kUnknownFrame;
  uint32_t generation = know_code(code);
  const uint64_t key = place_of(frame);
  uint64_t owner = reinterpret_cast<uintptr_t>(code);
  bool hit;
  CachedFrame* slot = find_slot(
      s->caches->frames, kFrameSlots - 1, mix(key),
      [&](auto& e) {
        return e.instruction == key && e.code == owner && e.generation == generation;
      },
      [](auto& e) { return e.instruction == 0; }, &hit);
  if (hit) return slot->id;
  if (!g_config.no_attribution) consider_frame(frame);
  CachedCode* names = code_names(s, code, generation);
  uint32_t id =
      define_frame(s, names->file, names->function, python_line(layout, code, begin_of_code(frame, code, key), key));
  if (id != kUnknownFrame) *slot = {key, owner, generation, id};
  return id;
}

bool is_python_frame(const char* frame) {
  return load<uint8_t>(frame, g_python.layout.frame_owner) < g_python.layout.skip_owner;
}

/// Frame ids innermost first, both ends of a deep stack. Returns how many.
uint32_t python_frame_ids(Stream* s, const char* top, uint32_t* out, uint32_t max) {
  uint32_t depth = 0;
  const uint32_t previous = g_python.layout.frame_previous;
  for (const char* f = top; f && depth < kMaxWalk; f = load<const char*>(f, previous)) {
    depth += is_python_frame(f);
  }
  uint32_t keep_top = depth <= max ? depth : max / 2;
  uint32_t keep_root = depth <= max ? 0 : max - keep_top - 1;
  uint32_t n = 0, index = 0;
  for (const char* f = top; f && index < depth; f = load<const char*>(f, previous)) {
    if (!is_python_frame(f)) continue;
    if (index == keep_top && keep_root) out[n++] = define_cut(s, depth - keep_top - keep_root);
    if (index < keep_top || index >= depth - keep_root) out[n++] = python_frame(s, f);
    ++index;
  }
  return n;
}

void know_module(Stream* s, uintptr_t pc) {
  Caches* c = s->caches;
  for (uint32_t i = 0; i < c->module_count; ++i) {
    if (pc >= c->modules[i][0] && pc < c->modules[i][1]) return;
  }
  Module module;
  if (c->module_count == kModuleSlots || !find_module(pc, &module)) return;
  char body[24 + sizeof(module.path)];
  const uint64_t words[3] = {module.begin, module.end, module.bias};
  memcpy(body, words, sizeof(words));
  size_t length = strlen(module.path);
  memcpy(body + sizeof(words), module.path, length);
  if (!define(s, kDefModule, body, sizeof(words) + length)) return;
  c->modules[c->module_count][0] = module.begin;
  c->modules[c->module_count][1] = module.end;
  c->module_count += 1;
}

uint32_t native_frame(Stream* s, void* return_address) {
  uint64_t pc = reinterpret_cast<uintptr_t>(return_address) - 1;  // inside the call instruction
  bool hit;
  CachedFrame* slot = find_slot(
      s->caches->frames, kFrameSlots - 1, mix(pc),
      [&](auto& e) { return e.instruction == pc && e.code == 0; },
      [](auto& e) { return e.instruction == 0; }, &hit);
  if (hit) return slot->id;
  know_module(s, pc);
  uint32_t body[3] = {s->caches->next_frame};
  memcpy(body + 1, &pc, 8);
  if (!define(s, kDefNativeFrame, body, sizeof(body))) return kUnknownFrame;
  *slot = {pc, 0, 0, s->caches->next_frame};
  return s->caches->next_frame++;
}

/// Writes the stack as what it shares with the one before it, from the root, and the rest.
uint32_t write_stack(Stream* s, const uint32_t* root_first, uint32_t depth) {
  Caches* c = s->caches;
  uint32_t keep = 0;
  while (keep < depth && keep < c->last_stack_depth && root_first[keep] == c->last_stack[keep])
    ++keep;
  struct {
    uint32_t id, base;
    uint16_t keep, count;
    uint32_t frames[kMaxFrames + 1];
  } body{c->next_stack,
         c->last_stack_id,
         static_cast<uint16_t>(keep),
         static_cast<uint16_t>(depth - keep),
         {}};
  if (body.id > kMaxStackId) return 0;
  memcpy(body.frames, root_first + keep, (depth - keep) * 4);
  if (!define(s, kDefStack, &body, 12 + (depth - keep) * 4)) return 0;
  memcpy(c->last_stack, root_first, depth * 4);
  c->last_stack_depth = depth;
  c->last_stack_id = body.id;
  c->next_stack += 1;
  return body.id;
}

constexpr int kMaxNative = 64;

constexpr uint64_t kLabelOwner = 1;  // no code object lies there

uint32_t label_frame(Stream* s, const Label& label, uint64_t hash) {
  bool hit;
  CachedFrame* slot = find_slot(
      s->caches->frames, kFrameSlots - 1, hash,
      [&](auto& e) { return e.instruction == hash && e.code == kLabelOwner; },
      [](auto& e) { return e.instruction == 0; }, &hit);
  if (hit) return slot->id;
  uint32_t file = define_string(s, label.place, strlen(label.place));
  uint32_t name = define_string(s, label.text, label.length);
  uint32_t id = file && name ? define_frame(s, file, name, 0) : kUnknownFrame;
  if (id != kUnknownFrame) *slot = {hash, kLabelOwner, 0, id};
  return id;
}

uint64_t hash_label(const Label& label) { return hash_bytes(label.text, label.length) | 1; }

/// Zero when the thread starts; plain data, so it outlives every destructor. `hash` is that of the
/// name, with another seed than operations, which may have the same name.
struct Layer {
  const char* name;
  uint32_t length;  // 0: none
  uint64_t hash;
};
thread_local Layer t_layer __attribute__((tls_model("initial-exec")));
constexpr size_t kMostLayerName = 1000;
constexpr uint64_t kLayerSeed = 0xa0761d6478bd642fu;

/// What a stack is made of, beside the frames of code.
struct Names {
  const Label* label;
  const Layer* layer;
  uint64_t phase;  // phase_hash()
  Surroundings around;

  bool any() const { return label || layer || phase || around.any(); }
  uint64_t mix_into(uint64_t hash) const {
    if (label) hash = mix(hash ^ hash_label(*label));
    if (layer) hash = mix(hash ^ layer->hash);
    if (phase) hash = mix(hash ^ phase);
    if (around.any()) hash = mix(hash ^ around.hash());
    return hash;
  }
};

uint32_t named_frame(Stream* s, const char* place, const char* text, uint32_t length) {
  const uint64_t hash = hash_text(text, length, hash_bytes(place, strlen(place)));
  return label_frame(s, {place, text, length}, hash);
}

/// The frames of the names, innermost first. False where the phase has ended meanwhile, on another
/// thread: then the hash is not that of the stack.
bool name_frames(Stream* s, const Names& names, uint32_t* out, uint32_t* count) {
  uint32_t n = 0;
  if (names.label) out[n++] = label_frame(s, *names.label, hash_label(*names.label));
  if (names.around.any()) {
    SurroundingName texts[kMostSurroundingNames];
    const uint32_t found = g_view->describe(names.around, texts);
    for (uint32_t i = 0; i < found; ++i) {
      out[n++] = named_frame(s, texts[i].place, texts[i].text, texts[i].length);
    }
    if (names.around.receiver) saw_module(names.around.receiver, names.around.receiver_type);
  }
  if (const Layer* layer = names.layer)
    out[n++] = label_frame(s, {"<layer>", layer->name, layer->length}, layer->hash);
  if (names.phase) {
    char text[kMostPhaseName];
    const uint32_t length = phase_name(text);
    if (!length) return false;
    out[n++] = named_frame(s, "<phase>", text, length);
  }
  *count = n;
  return true;
}
constexpr uint32_t kMostNames = 3 + kMostSurroundingNames;
static_assert(kMostNames + kMaxNative < kMaxFrames);

__attribute__((noinline)) uint32_t define_stack(Stream* s, const char* top, void* const* native,
                                                int native_count, const Names& names) {
  uint32_t innermost_first[kMaxFrames + 1];
  uint32_t n = 0;
  if (names.any() && !name_frames(s, names, innermost_first, &n)) return 0;
  for (int i = 0; i < native_count; ++i) innermost_first[n++] = native_frame(s, native[i]);
  if (top) n += python_frame_ids(s, top, innermost_first + n, kMaxFrames - n);
  uint32_t root_first[kMaxFrames + 1];
  for (uint32_t i = 0; i < n; ++i) root_first[i] = innermost_first[n - 1 - i];
  return n ? write_stack(s, root_first, n) : 0;
}

/// Whose call the work is put down to, where `call` is the frame of the innermost watched one.
void find_receiver(const char* top, const char* call, Surroundings* around) {
  bool is_outside = false;
  if (around->is_in_work) {
    find_call(top, kMaxWalk, true, &is_outside);
    if (is_outside) return;  // it called what now works: that was made elsewhere
  }
  around->receiver = receiver_of(call, &around->receiver_type);
  if (__builtin_expect(around->receiver && may_be_new(around->receiver), 0)) {
    saw_module(around->receiver, around->receiver_type);
  }
}

}  // namespace

void set_layer(const char* name) {
  uint32_t length = name ? static_cast<uint32_t>(strnlen(name, kMostLayerName)) : 0;
  // A signal handler that allocates in between sees no layer, never half of one.
  __atomic_store_n(&t_layer.length, 0, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  t_layer.name = name;
  t_layer.hash = mix(hash_bytes(name ? name : "", length) ^ kLayerSeed) | 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&t_layer.length, length, __ATOMIC_RELAXED);
}

HOT uint32_t current_stack(Stream* s, const Label* label, bool is_free) {
  const bool is_code_alone = label && label->is_code_alone;
  Names names{label && label->length ? label : nullptr, t_layer.length ? &t_layer : nullptr, 0, {}};
  if (__builtin_expect(g_config.stacks != kStacksNone, 1)) {
    names.phase = phase_hash();
    if (g_view && !g_config.no_attribution && !is_code_alone) g_view->sense(&names.around);
  }
  bool unsafe = false;
  const char* top = top_frame(&unsafe);
  if (__builtin_expect(unsafe && !is_free, 0)) count_loss(kLostStack);
  void* native[kMaxNative];
  int native_count = 0;
  if (g_config.stacks & kStacksNative) native_count = native_backtrace(native, kMaxNative);
  if (!top && native_count <= 0) {
    if (native_has_ended()) count_loss(kLostStack);
    if (!names.any()) return 0;
  }
  const WatchedCodes* watched = watched_codes();
  const char* call = nullptr;
  uint64_t hash =
      top ? hash_frames(top, code_epoch(), &s->caches->walked, watched->call, &call) : 0;
  if (call && !is_code_alone) find_receiver(top, call, &names.around);
  for (int i = 0; i < native_count; ++i) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(native[i])) * 0xd6e8feb86659fd93u;
  }
  if (names.any()) hash = names.mix_into(hash);
  hash ^= hash >> 29;
  hash |= 1;
  bool hit;
  CachedStack* slot = find_slot(
      s->caches->stacks, kStackSlots - 1, hash >> 20, [&](auto& e) { return e.hash == hash; },
      [](auto& e) { return e.hash == 0; }, &hit);
  if (__builtin_expect(hit, 1)) return static_cast<uint32_t>(slot->id);
  if (__atomic_load_n(&g_is_package_wanted, __ATOMIC_RELAXED) && top && !is_code_alone) load_package();
  uint32_t id = define_stack(s, top, native, native_count, names);
  // Its own frames may have told where a watched function is, or its phase has ended: once more.
  if (watched != watched_codes() || (names.phase && names.phase != phase_hash())) {
    return current_stack(s, label, is_free);
  }
  if (id == 0) {
    count_loss(kLostStack);
    return 0;
  }
  *slot = {hash, id};
  return id;
}

}  // namespace gpumemprof::probe
