#include "native/marks/roles.h"

#include "gpumemprof/gpumemprof.h"
#include "native/marks/calls.h"

namespace gpumemprof::python {
namespace {

constexpr size_t kMost = 400000;

}  // namespace

void Roles::begin_look() {
  ++look_;
  if (renamed_.empty()) return;
  for (auto& [address, told] : told_) {
    const bool follows =
        told.role == GPUMEMPROF_ROLE_GRADIENT || told.role == GPUMEMPROF_ROLE_OPTIMIZER_STATE;
    if (follows && renamed_.contains(told.owner)) told.owner = nullptr;
  }
  renamed_.clear();
}

bool Roles::is_told(const void* address, int role, const PyObject* owner, size_t tensors) {
  const auto found = told_.find(address);
  if (found == told_.end()) return !address || told_.size() >= kMost;
  Told& told = found->second;
  if (told.seen_in == look_) return true;
  if (told.role != role || told.owner != owner || told.tensors != tensors) return false;
  told.seen_in = look_;
  return true;
}

bool Roles::follow(std::vector<Sight>* sights) {
  sights_.swap(*sights);
  const std::vector<Sight>& before = *sights;
  if (is_changed_ || sights_.size() != before.size()) return false;
  changed_.clear();
  for (size_t i = 0; i < sights_.size(); ++i) {
    const Sight &now = sights_[i], &then = before[i];
    if (now == then) continue;
    if (now.tensor != then.tensor || now.role != then.role) return false;
    if (now.role != GPUMEMPROF_ROLE_GRADIENT) return false;
    changed_.push_back(i);
  }
  if (!move_gradients(before)) return false;
  g_calls.roles_hold();
  return true;
}

/// False where one lies at what was told to be something else, or several in one block.
bool Roles::move_gradients(const std::vector<Sight>& before) {
  std::unordered_map<const void*, const PyObject*> places;
  for (const size_t i : changed_) {
    const Sight& now = sights_[i];
    if (now.address && places.emplace(now.address, now.tensor).first->second != now.tensor)
      return false;
  }
  for (const size_t i : changed_) {
    const auto found = told_.find(before[i].address);
    if (found == told_.end() || found->second.role != GPUMEMPROF_ROLE_GRADIENT) continue;
    if (found->second.tensors > 1) return false;
    found->second.seen_in = kGone;
  }
  for (const size_t i : changed_) {
    const Sight& now = sights_[i];
    if (!now.address) continue;
    const auto found = told_.find(now.address);
    if (found == told_.end() && told_.size() >= kMost) continue;
    if (found != told_.end()) {
      Told& told = found->second;
      const bool is_its_own = told.role == now.role && told.owner == now.tensor;
      if (!is_its_own && told.seen_in != kGone) return false;
      told.seen_in = look_;
      if (is_its_own) continue;
    }
    tell(now.address, now.role, now.tensor, name(sights_[i - 1].address));
  }
  for (const size_t i : changed_) {
    const auto found = told_.find(before[i].address);
    if (found == told_.end() || found->second.seen_in != kGone) continue;
    g_calls.unmark_storage(found->first);
    told_.erase(found);
  }
  is_changed_ = false;
  return true;
}

void Roles::tell(const void* address, int role, const PyObject* owner, std::string name,
                 size_t tensors) {
  Told& told = told_[address];
  const bool is_same = told.role == role && told.owner == owner;
  if (role == GPUMEMPROF_ROLE_PARAMETER && is_same && told.name != name) renamed_.insert(owner);
  is_changed_ |= !is_same || !renamed_.empty();
  told = {role, look_, owner, tensors, std::move(name)};
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
  is_changed_ = false;
}

Roles& roles() {
  static auto* all = new Roles;
  return *all;
}

}  // namespace gpumemprof::python
