// Processes of a card, as fdinfo tells them, in the words of every vendor.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "devices/drm_cards.h"
#include "devices/drm_clients.h"
#include "devices/process_place.h"

namespace gpumemprof {

/// `is_local` says which regions are the card's own memory ("vram", "local0"). `why` is the reason
/// for a process that tells no such region.
std::vector<AcceleratorProcess> processes_of_card(
    const DrmProcesses& all, const DrmCard& card,
    const std::function<bool(const std::string&)>& is_local, const std::string& why);

/// "processes of other users …" where some could not be looked at.
std::string unreadable_note(const DrmProcesses& all);

}  // namespace gpumemprof
