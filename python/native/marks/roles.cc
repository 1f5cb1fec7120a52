#include "native/marks/roles.h"

#include "native/marks/calls.h"

namespace gpumemprof::python {
namespace {

constexpr size_t kMost = 400000;

}  // namespace

bool Roles::is_told(const void* address, int role, const PyObject* owner) {
  const auto found = told_.find(address);
  if (found == told_.end()) return !address || told_.size() >= kMost;
  Told& told = found->second;
  if (told.seen_in == look_) return true;
  if (told.role != role || told.owner != owner) return false;
  told.seen_in = look_;
  return true;
}

void Roles::tell(const void* address, int role, const PyObject* owner, std::string name) {
  Told& told = told_[address];
  told = {role, look_, owner, std::move(name)};
  g_calls.mark_storage(address, role, told.name.c_str());
}

const std::string& Roles::name(const void* address) const {
  static const std::string* none = new std::string;
  const auto found = told_.find(address);
  return found == told_.end() ? *none : found->second.name;
}

void Roles::end_look() {
  for (auto at = told_.begin(); at != told_.end();) {
    if (at->second.seen_in == look_) {
      ++at;
    } else {
      g_calls.unmark_storage(at->first);
      at = told_.erase(at);
    }
  }
  g_calls.roles_hold();
}

Roles& roles() {
  static auto* all = new Roles;
  return *all;
}

}  // namespace gpumemprof::python
