#include "devices/drm_cards.h"


#include <algorithm>
#include <charconv>

#include "base/folder.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostEntries = 65536, kMostName = 200;

/// 7 of "card7" with the prefix "card"; empty for "card7-DP-1".
std::optional<int> number_behind(const std::string& name, const std::string& prefix) {
  int number = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto done = std::from_chars(begin, end, number);
  if (done.ec != std::errc{} || done.ptr != end || begin == end) return std::nullopt;
  return number;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string one_line(const std::string& path) {
  std::string text = read_proc_text(path).substr(0, kMostName);
  return text.substr(0, text.find('\n'));
}

/// The first sensor of the card that has the file.
Known<uint64_t> sensor(const DrmCard& card, std::initializer_list<const char*> files,
                       uint64_t divisor) {
  const std::string folder = card.device + "/hwmon";
  for (const std::string& one : entries_of(folder)) {
    for (const char* file : files) {
      const auto value = whole_number(read_proc_text(folder + '/' + one + '/' + file));
      if (value) return Known<uint64_t>::of(*value / divisor);
    }
  }
  return Known<uint64_t>::absent("the kernel has no such sensor for this card");
}

}  // namespace

std::vector<std::string> entries_of(const std::string& folder) {
  return names_in(folder, [](std::string_view name) { return !name.starts_with('.'); },
                  kMostEntries);
}

std::string setting_of(const std::string& text, const std::string& key) {
  for (size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (line.starts_with(key + '=')) return line.substr(key.size() + 1, kMostName);
  }
  return "";
}

std::vector<DrmCard> list_drm_cards(const std::string& root,
                                    const std::vector<std::string>& drivers) {
  std::vector<DrmCard> cards;
  const std::string folder = root + "/sys/class/drm";
  for (const std::string& name : entries_of(folder)) {
    const auto number = number_behind(name, "card");
    if (!number) continue;
    DrmCard card{.number = *number, .folder = folder + '/' + name};
    card.device = card.folder + "/device";
    const std::string uevent = read_proc_text(card.device + "/uevent");
    card.driver = setting_of(uevent, "DRIVER");
    if (std::ranges::find(drivers, card.driver) == drivers.end()) continue;
    card.pci = setting_of(uevent, "PCI_SLOT_NAME");
    card.pci_id = setting_of(uevent, "PCI_ID");
    for (const std::string& node : entries_of(card.device + "/drm"))
      if (const auto minor = number_behind(node, "renderD")) card.render_minor = minor;
    cards.push_back(std::move(card));
  }
  std::ranges::sort(cards, {}, &DrmCard::number);
  return cards;
}

Quantity read_bytes(const std::string& path) {
  const Known<uint64_t> number = read_number(path);
  return number ? Quantity::of(*number.value) : Quantity::absent(number.absent_because);
}

Known<uint64_t> read_number(const std::string& path) {
  const auto value = whole_number(read_proc_text(path));
  return value ? Known<uint64_t>::of(*value)
               : Known<uint64_t>::absent("the kernel has no " + last_part(path) + " here");
}

Accelerator accelerator_of_card(const DrmCard& card, const std::string& root) {
  Accelerator out{.source = "sysfs"};
  const auto line = [](const std::string& path, const std::string& why) {
    std::string text = one_line(path);
    return text.empty() ? Known<std::string>::absent(why) : Known<std::string>::of(text);
  };
  out.name = line(card.device + "/product_name",
                  "the kernel has no name, only the PCI ID " +
                      (card.pci_id.empty() ? std::string("of none") : card.pci_id));
  out.uuid = Known<std::string>::absent("the kernel has no serial number for this card");
  out.pci_bus_id = card.pci.empty() ? Known<std::string>::absent("the card is not on a PCI bus")
                                    : Known<std::string>::of(card.pci);
  out.driver_version = line(root + "/sys/module/" + card.driver + "/version",
                            card.driver + " is part of the kernel and has no version of its own");
  out.temperature_celsius = sensor(card, {"temp1_input"}, 1000);
  out.power_milliwatts = sensor(card, {"power1_average", "power1_input"}, 1000);
  out.mig = Known<bool>::of(false);
  return out;
}

}  // namespace gpumemprof
