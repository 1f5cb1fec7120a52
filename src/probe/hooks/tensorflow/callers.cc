#include "probe/hooks/tensorflow/callers.h"

#include "probe/symbol_range.h"

#define SCALAR(name) "_ZN10tensorflow12EagerContext" name, kScalar

namespace gpumemprof::probe::tensorflow {
namespace {

// A graph has an arena that begins with 8 KiB; every operation that is called eagerly gets two
// graphs. A Python number becomes a scalar that the context keeps for the next one of its value.
constexpr char kArena[] = "tensorflow::core::Arena", kScalar[] = "tensorflow::EagerContext scalar";
struct Function {
  const char* name;
  const char* owner;
};
constexpr Function kFunctions[] = {
    {"_ZN10tensorflow4core5ArenaC1Em", kArena},
    {"_ZN10tensorflow4core5Arena13AllocNewBlockEmj", kArena},
    {SCALAR("16CreateBoolScalarEb")},
    {SCALAR("16CreateHalfScalarEN5Eigen4halfE")},
    {SCALAR("17CreateFloatScalarEf")},
    {SCALAR("17CreateInt32ScalarEi")},
    {SCALAR("17CreateInt64ScalarEl")},
    {SCALAR("18CreateDoubleScalarEd")},
    {SCALAR("18CreateStringScalarEN3tsl7tstringE")},
    {SCALAR("18CreateUint64ScalarEm")},
    {SCALAR("22CreateComplex128ScalarESt7complexIdE")},
};
constexpr uint32_t kCount = sizeof(kFunctions) / sizeof(kFunctions[0]);

/// Where they lie in one object. TensorFlow has two of interest, custom builds one.
struct Object {
  const Client* client;  // stored last
  ObjectRange functions[kCount];
};
constexpr uint32_t kObjects = 4;
Object g_objects[kObjects];
uint32_t g_count;

__attribute__((noinline, cold)) const Object* add_object(const Client* client) {
  // Two threads may add the same one twice: both entries say the same.
  uint32_t index = __atomic_fetch_add(&g_count, 1, __ATOMIC_RELAXED);
  if (index >= kObjects) return __atomic_fetch_sub(&g_count, 1, __ATOMIC_RELAXED), nullptr;
  Object* object = &g_objects[index];
  const void* inside = reinterpret_cast<const void*>(client->range.begin);
  for (uint32_t i = 0; i < kCount; ++i) {
    object->functions[i] = function_range(inside, kFunctions[i].name);
  }
  __atomic_store_n(&object->client, client, __ATOMIC_RELEASE);
  return object;
}

}  // namespace

const char* owner_of(const Client* client, const void* caller) {
  if (client->range.end == 0) return nullptr;  // of all others
  const Object* object = nullptr;
  for (uint32_t i = 0; i < kObjects && !object; ++i) {
    if (__atomic_load_n(&g_objects[i].client, __ATOMIC_ACQUIRE) == client) object = &g_objects[i];
  }
  if (!object && __atomic_load_n(&g_count, __ATOMIC_RELAXED) < kObjects) {
    object = add_object(client);
  }
  // A call may be a function's last instruction: then it returns to the byte behind it.
  const char* inside_call = static_cast<const char*>(caller) - 1;
  for (uint32_t i = 0; object && i < kCount; ++i) {
    if (object->functions[i].contains(inside_call)) return kFunctions[i].owner;
  }
  return nullptr;
}

}  // namespace gpumemprof::probe::tensorflow
