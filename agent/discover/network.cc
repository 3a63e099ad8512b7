#include "agent/discover/network.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gleaner::discover {
namespace {

constexpr uint64_t kRouteUp = 0x1, kRouteReject = 0x200;  // RTF_UP and RTF_REJECT in <linux/route.h>
constexpr int kMostLevels = 4;                            // VLAN on bridge on bond on NIC

std::vector<std::string> read_lower(const Tree& tree, const std::string& folder) {
  std::vector<std::string> lower;
  for (const std::string& entry : tree.list(folder)) {
    absl::string_view name = entry;
    if (absl::ConsumePrefix(&name, "lower_")) lower.emplace_back(name);
  }
  return lower;
}

// Returns the speed that the kernel reports. Ignores values that are not a speed: a veth always reports 10 Gbit/s, a
// link that is down 0 or an error, a virtio NIC -1.
std::optional<double> read_speed(const Tree& tree, const std::string& folder, bool physical, bool has_lower) {
  if (!physical && !has_lower) return std::nullopt;
  const std::optional<double> megabits = tree.read_number(absl::StrCat(folder, "/speed"));
  // Older kernels print SPEED_UNKNOWN as 4294967295.
  if (!megabits.has_value() || *megabits <= 0 || *megabits >= 4294967295.0) return std::nullopt;
  return *megabits * 1e6;
}

const NetDevice* find(const std::vector<NetDevice>& devices, absl::string_view name) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const NetDevice& d) { return d.name == name; });
  return found == devices.end() ? nullptr : &*found;
}

// Returns the speed of a device without a speed of its own (bond, VLAN) from the devices below it.
std::optional<double> speed_of_lower(const Tree& tree, const std::vector<NetDevice>& devices, const NetDevice& device,
                                     int levels) {
  const std::string mode =
      tree.read(absl::StrCat("sys/class/net/", device.name, "/bonding/mode")).value_or("");  // "802.3ad 4"
  const bool adds_up =
      !mode.empty() && !absl::StartsWith(mode, "active-backup") && !absl::StartsWith(mode, "broadcast");
  std::optional<double> total;
  for (const std::string& name : device.lower) {
    const NetDevice* lower = find(devices, name);
    if (lower == nullptr || !lower->up || levels == 0) continue;
    const std::optional<double> speed =
        lower->bits_per_second ? lower->bits_per_second : speed_of_lower(tree, devices, *lower, levels - 1);
    if (!speed.has_value()) return std::nullopt;  // without one of the speeds the total is unknown
    total = !total.has_value() ? *speed : adds_up ? *total + *speed : std::max(*total, *speed);
  }
  return total;
}

uint64_t hex(absl::string_view text) {
  uint64_t value = 0;
  return absl::SimpleHexAtoi(text, &value) ? value : 0;
}

struct Route {
  std::string device;
  uint64_t metric = std::numeric_limits<uint64_t>::max();
};

// Columns of proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask ... Addresses and flags are
// hexadecimal, the metric is decimal.
Route default_route_4(const std::string& text) {
  Route best;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() < 8 || words[1] != "00000000" || words[7] != "00000000") continue;
    const uint64_t flags = hex(words[3]);
    uint64_t metric = 0;
    if ((flags & kRouteUp) == 0 || (flags & kRouteReject) != 0 || !absl::SimpleAtoi(words[6], &metric)) continue;
    if (metric < best.metric) best = {std::string(words[0]), metric};
  }
  return best;
}

// Columns of proc/net/ipv6_route: destination, its prefix length, source, its prefix length, next hop, metric,
// references, use, flags, device. Numbers are hexadecimal.
Route default_route_6(const std::string& text) {
  Route best;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() < 10 || words[1] != "00" || words[0] != std::string(32, '0') || words[9] == "lo") continue;
    const uint64_t flags = hex(words[8]);
    if ((flags & kRouteUp) == 0 || (flags & kRouteReject) != 0) continue;
    if (hex(words[5]) < best.metric) best = {std::string(words[9]), hex(words[5])};
  }
  return best;
}

}  // namespace

std::vector<NetDevice> read_net_devices(const Tree& tree) {
  std::vector<NetDevice> devices;
  for (const std::string& name : tree.list("sys/class/net")) {
    const std::string folder = absl::StrCat("sys/class/net/", name);
    if (name == "lo" || !tree.exists(absl::StrCat(folder, "/operstate"))) continue;  // bonding_masters is a file
    NetDevice device;
    device.name = name;
    const bool physical = tree.exists(absl::StrCat(folder, "/device"));
    if (physical) {
      device.driver = std::string(last_part(tree.real_path(absl::StrCat(folder, "/device/driver"))));
      device.place = read_pci_place(tree, absl::StrCat(folder, "/device"));
      device.virtual_function = tree.exists(absl::StrCat(folder, "/device/physfn"));
    }
    const std::string state = tree.read(absl::StrCat(folder, "/operstate")).value_or("");
    device.up = state == "up" || state == "unknown";
    device.lower = read_lower(tree, folder);
    device.bits_per_second = read_speed(tree, folder, physical, !device.lower.empty());
    devices.push_back(std::move(device));
  }
  for (NetDevice& device : devices) {
    if (!device.lower.empty() && !device.bits_per_second.has_value()) {
      device.bits_per_second = speed_of_lower(tree, devices, device, kMostLevels);
    }
  }
  return devices;
}

std::vector<RdmaPort> read_rdma_ports(const Tree& tree) {
  std::vector<RdmaPort> ports;
  for (const std::string& name : tree.list("sys/class/infiniband")) {
    const std::string folder = absl::StrCat("sys/class/infiniband/", name);
    const std::vector<std::string> numbers = tree.list(absl::StrCat(folder, "/ports"));
    for (const std::string& number : numbers) {
      const std::string port_folder = absl::StrCat(folder, "/ports/", number);
      RdmaPort port;
      port.device = name;
      port.name = numbers.size() > 1 ? absl::StrCat(name, ":", number) : name;
      port.place = read_pci_place(tree, absl::StrCat(folder, "/device"));
      port.active = absl::StrContains(tree.read(absl::StrCat(port_folder, "/state")).value_or(""), "ACTIVE");
      const std::string rate = tree.read(absl::StrCat(port_folder, "/rate")).value_or("");  // "100 Gb/sec (4X EDR)"
      double gigabits = 0;
      if (absl::SimpleAtod(rate.substr(0, rate.find(' ')), &gigabits) && gigabits > 0) {
        port.bits_per_second = gigabits * 1e9;
      }
      for (const std::string& index : tree.list(absl::StrCat(port_folder, "/gid_attrs/ndevs"))) {
        const std::string device = tree.read(absl::StrCat(port_folder, "/gid_attrs/ndevs/", index)).value_or("");
        const bool known =
            std::find(port.net_devices.begin(), port.net_devices.end(), device) != port.net_devices.end();
        if (!device.empty() && !known) port.net_devices.push_back(device);
      }
      if (port.net_devices.empty()) port.net_devices = tree.list(absl::StrCat(folder, "/device/net"));
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::string read_default_device(const Tree& tree, const std::vector<NetDevice>& devices) {
  for (const char* folder : {"proc/1/net", "proc/net"}) {
    const Route route4 = default_route_4(tree.read(absl::StrCat(folder, "/route")).value_or(""));
    if (!route4.device.empty()) return route4.device;
    const Route route6 = default_route_6(tree.read(absl::StrCat(folder, "/ipv6_route")).value_or(""));
    if (!route6.device.empty()) return route6.device;
  }
  const NetDevice* best = nullptr;
  for (const NetDevice& device : devices) {
    if (device.driver.empty() || !device.up) continue;
    if (best == nullptr || device.bits_per_second.value_or(0) > best->bits_per_second.value_or(0)) best = &device;
  }
  return best == nullptr ? "" : best->name;
}

std::optional<Traffic> read_traffic(const Tree& tree, const std::string& device) {
  const std::string folder = absl::StrCat("sys/class/net/", device, "/statistics");
  const std::optional<double> received = tree.read_number(absl::StrCat(folder, "/rx_bytes"));
  const std::optional<double> sent = tree.read_number(absl::StrCat(folder, "/tx_bytes"));
  if (!received.has_value() || !sent.has_value()) return std::nullopt;
  return Traffic{*received, *sent};
}

std::vector<const NetDevice*> with_lower(const std::vector<NetDevice>& devices, const std::string& name) {
  std::vector<const NetDevice*> result;
  if (const NetDevice* device = find(devices, name)) result.push_back(device);
  for (size_t i = 0; i < result.size(); ++i) {
    for (const std::string& lower : result[i]->lower) {
      const NetDevice* device = find(devices, lower);
      if (device != nullptr && std::find(result.begin(), result.end(), device) == result.end())
        result.push_back(device);
    }
  }
  return result;
}

}  // namespace gleaner::discover
