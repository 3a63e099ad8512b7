#include "agent/discover/pci.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gleaner::discover {
namespace {

absl::string_view without_function(absl::string_view address) { return address.substr(0, address.rfind('.')); }

}  // namespace

bool is_pci_address(absl::string_view text) {
  // 0000:3b:00.0. Virtual domains behind VMD have more digits.
  const size_t dot = text.rfind('.');
  if (dot == absl::string_view::npos || text.size() - dot != 2 || !absl::ascii_isxdigit(text[dot + 1])) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(text.substr(0, dot), ':');
  if (parts.size() != 3 || parts[0].size() < 4 || parts[1].size() != 2 || parts[2].size() != 2) return false;
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return std::all_of(part.begin(), part.end(), [](char c) { return absl::ascii_isxdigit(c); });
  });
}

std::string normal_pci_address(absl::string_view address) {
  std::string text = absl::AsciiStrToLower(address);
  const size_t colon = text.find(':');
  if (colon == 8 && text.compare(0, 4, "0000") == 0) text.erase(0, 4);
  return text;
}

PciPlace read_pci_place(const Tree& tree, absl::string_view path) {
  PciPlace place;
  const std::string real = tree.real_path(path);
  std::vector<std::string> parts = absl::StrSplit(real, '/');
  // Removes virtio2, net, eth0 below the device.
  while (!parts.empty() && !is_pci_address(parts.back())) parts.pop_back();
  if (parts.empty()) return place;
  place.address = parts.back();
  place.numa_node = static_cast<int>(
      tree.read_number(absl::StrCat("sys/bus/pci/devices/", place.address, "/numa_node")).value_or(-1));
  parts.pop_back();
  // Two levels are one switch. The walk ends at the root complex, since "pci0000:3a" is no device.
  while (parts.size() >= 2 && is_pci_address(parts.back()) && is_pci_address(parts[parts.size() - 2])) {
    place.switches.push_back(parts[parts.size() - 2]);
    parts.resize(parts.size() - 2);
  }
  return place;
}

api::PathType path_type(const PciPlace& a, const PciPlace& b) {
  if (a.address.empty() || b.address.empty()) return api::PathType::kSys;
  if (without_function(a.address) == without_function(b.address)) return api::PathType::kLoc;
  if (!a.switches.empty() && !b.switches.empty()) {
    if (a.switches.front() == b.switches.front()) return api::PathType::kPix;
    const auto shared = std::find_first_of(a.switches.begin(), a.switches.end(), b.switches.begin(), b.switches.end());
    if (shared != a.switches.end()) return api::PathType::kPxb;
  }
  // Machines with one NUMA node may report -1 for node 0.
  const bool same_node = std::max(a.numa_node, 0) == std::max(b.numa_node, 0);
  return same_node ? api::PathType::kPhb : api::PathType::kSys;
}

}  // namespace gleaner::discover
