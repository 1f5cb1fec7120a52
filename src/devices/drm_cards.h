// The graphics cards that the kernel's DRM subsystem shows under /sys/class/drm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "devices/accelerator.h"

namespace gpumemprof {

struct DrmCard {
  int number = 0;                   ///< of "card0"
  std::string folder;               ///< "/sys/class/drm/card0", behind the root
  std::string device;               ///< folder + "/device": the PCI device
  std::string driver;               ///< "amdgpu", "i915", "xe", …
  std::string pci;                  ///< "0000:03:00.0"; empty where the device is on no PCI bus
  std::string pci_id;               ///< "1002:740F"
  std::optional<int> render_minor;  ///< 128 of renderD128
};

/// The cards of these drivers, by number. `root` stands for "/".
std::vector<DrmCard> list_drm_cards(const std::string& root,
                                    const std::vector<std::string>& drivers);

/// A file of one number; absent with the reason that `path`'s last part is not there.
Quantity read_bytes(const std::string& path);
Known<uint64_t> read_number(const std::string& path);

/// Names of the entries of a folder, sorted, without those that begin with a dot; at most 65,536.
std::vector<std::string> entries_of(const std::string& folder);

/// An accelerator with what every card has: bus, version of the kernel's module, temperature and
/// power of its sensors. `name_file` holds the product's name where the board has one.
Accelerator accelerator_of_card(const DrmCard& card, const std::string& root);

/// The first "KEY=value" of a text such as uevent; empty where there is none.
std::string setting_of(const std::string& text, const std::string& key);

}  // namespace gpumemprof
