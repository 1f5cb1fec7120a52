#include "probe/clients.h"

namespace gpumemprof::probe {

__attribute__((noinline, cold)) Client* Clients::add(const void* address) {
  Client* of_all_others = &clients_[kClients - 1];
  if (__atomic_load_n(&count_, __ATOMIC_RELAXED) >= kClients - 1) return of_all_others;
  ObjectRange range = object_of(address);
  if (range.end == 0) return of_all_others;  // code that was made on the way
  // Two threads may add the same object twice: both entries say the same.
  uint32_t index = __atomic_fetch_add(&count_, 1, __ATOMIC_RELAXED);
  if (index >= kClients - 1) return of_all_others;
  clients_[index].range.begin = range.begin;
  __atomic_store_n(&clients_[index].range.end, range.end, __ATOMIC_RELEASE);
  return &clients_[index];
}

__attribute__((noinline, cold)) void* Clients::find(Client* client, uint32_t which) {
  const SharedName& f = names_[which];
  const void* inside = reinterpret_cast<const void*>(client->range.begin);
  void* found = client->range.end ? find_real_of(inside, f.name, f.ours) : nullptr;
  if (!found) found = find_real(f.name, f.ours, library_);
  if (found && f.ours) {
    Verdict verdict = object_is_named(found, part_) ? kOfFramework : kForeign;
    __atomic_store_n(&client->verdict, verdict, __ATOMIC_RELAXED);
  }
  if (!found) found = f.fallback;
  __atomic_store_n(&client->real[which], found, __ATOMIC_RELEASE);
  return found;
}

}  // namespace gpumemprof::probe
