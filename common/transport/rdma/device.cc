#include "common/transport/rdma/device.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

// The memory of a few connections, payloads included. A job would soon exceed a lower limit.
constexpr size_t kTrialBytes = 16 << 20;
constexpr int kTrialAccess = IBV_ACCESS_LOCAL_WRITE;  // an int, since clang warns of the enum in the macro ibv_reg_mr()
constexpr int kLeastObjects = 16;

struct DeviceList {
  int count = 0;
  std::unique_ptr<ibv_device* [], Ends<ibv_free_device_list>> devices { ibv_get_device_list(&count) };
};

// Returns the link's bits per second: the number of its serial lanes times the rate of one, both encoded in
// ibv_port_attr.
uint64_t rate_of(const ibv_port_attr& port) {
  constexpr std::array<std::pair<int, uint64_t>, 4> kWidths = {{{1, 1}, {2, 4}, {4, 8}, {8, 12}}};
  constexpr std::array<std::pair<int, uint64_t>, 8> kSpeeds = {{{1, 2'500'000'000},
                                                                {2, 5'000'000'000},
                                                                {4, 10'000'000'000},
                                                                {8, 10'000'000'000},
                                                                {16, 14'062'500'000},
                                                                {32, 25'781'250'000},
                                                                {64, 53'125'000'000},
                                                                {128, 106'250'000'000}}};
  const auto find = [](const auto& table, int key) {
    const auto found = std::find_if(table.begin(), table.end(), [key](const auto& row) { return row.first == key; });
    return found == table.end() ? uint64_t{1} : found->second;
  };
  const uint64_t lanes = port.active_width == 16 ? 2 : find(kWidths, port.active_width);
  return lanes * find(kSpeeds, port.active_speed);
}

int numa_node_of(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/device/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

bool is_routable(const ibv_gid_entry& gid) {
  return gid.gid_type == IBV_GID_TYPE_ROCE_V2 || gid.gid_type == IBV_GID_TYPE_IB;
}

// Returns the length of the network prefix of the interface that has the address; 0 if there is none.
int network_bits_of(const sockaddr_storage& address) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return 0;
  const std::unique_ptr<ifaddrs, Ends<freeifaddrs>> all(first);
  const auto bytes_of = [](const void* at) {
    const auto* any = static_cast<const sockaddr*>(at);
    return any->sa_family == AF_INET
               ? std::span(reinterpret_cast<const uint8_t*>(&static_cast<const sockaddr_in*>(at)->sin_addr), 4)
               : std::span(static_cast<const sockaddr_in6*>(at)->sin6_addr.s6_addr, 16);
  };
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || one->ifa_addr->sa_family != address.ss_family)
      continue;
    const auto has = bytes_of(one->ifa_addr);
    const auto wanted = bytes_of(&address);
    if (!std::equal(has.begin(), has.end(), wanted.begin())) continue;
    int bits = 0;
    for (const uint8_t byte : bytes_of(one->ifa_netmask)) bits += std::popcount(byte);
    return bits;
  }
  return 0;
}

// Returns the GID with index `wanted`. If that is negative, returns the first RoCE v2 or InfiniBand GID that contains
// an IPv4 address, else the first with an IPv6 address, else the first of all.
absl::StatusOr<ibv_gid_entry> choose_gid(ibv_context* device, const std::string& name, uint8_t port, int entries,
                                         int wanted) {
  ibv_gid_entry best{};
  int best_rank = 0;
  for (int i = 0; i < entries; ++i) {
    ibv_gid_entry entry{};
    if ((wanted >= 0 && i != wanted) || ibv_query_gid_ex(device, port, static_cast<uint32_t>(i), &entry, 0) != 0)
      continue;
    const int family = address_of(entry.gid).ss_family;
    const int rank = !is_routable(entry) && wanted < 0 ? 0 : family == AF_INET ? 3 : family == AF_INET6 ? 2 : 1;
    if (rank <= best_rank) continue;
    best = entry;
    best_rank = rank;
  }
  if (best_rank > 0) return best;
  if (wanted >= 0) {
    return absl::UnavailableError(absl::StrCat("port ", port, " of ", name, " has no GID with index ", wanted,
                                               "; `rdma link` and /sys/class/infiniband/", name, "/ports/", port,
                                               "/gids show its GIDs"));
  }
  return absl::UnavailableError(absl::StrCat(
      "port ", port, " of ", name, " has no RoCE v2 or InfiniBand GID; give its network interface an address"));
}

absl::Status check_port(const std::string& name, uint8_t port, const ibv_port_attr& attributes) {
  if (attributes.state == IBV_PORT_ACTIVE) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("port ", port, " of ", name, " is ", ibv_port_state_str(attributes.state),
                                             ", not active; `rdma link` shows it, `ip link` its network interface"));
}

absl::Status check_limits(ibv_context* device, const std::string& name) {
  ibv_device_attr limits{};
  if (ibv_query_device(device, &limits) != 0) return verbs_error(errno, absl::StrCat("can't query ", name));
  if (limits.max_qp < kLeastObjects || limits.max_mr < kLeastObjects || limits.max_cq < kLeastObjects) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " has ", limits.max_qp, " queue pairs, ", limits.max_cq, " completion queues and ",
                     limits.max_mr, " memory regions; at least ", kLeastObjects, " of each are needed"));
  }
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kTrialBytes), &std::free);
  const ProtectionDomain domain(ibv_alloc_pd(device));
  if (domain == nullptr) return verbs_error(errno, absl::StrCat("can't make a protection domain of ", name));
  const MemoryRegion region(ibv_reg_mr(domain.get(), memory.get(), kTrialBytes, kTrialAccess));
  if (region != nullptr) return absl::OkStatus();
  const int error = errno;
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return verbs_error(
      error, absl::StrCat("can't register memory with ", name, " (a process may lock ",
                          limit.rlim_cur == RLIM_INFINITY ? "any number of" : absl::StrCat(limit.rlim_cur).c_str(),
                          " bytes; raise `ulimit -l`, best to unlimited)"));
}

absl::StatusOr<Port> try_port(ibv_context* device, const std::string& name, uint8_t number, int gid_index) {
  ibv_port_attr attributes{};
  if (ibv_query_port(device, number, &attributes) != 0) {
    return verbs_error(errno, absl::StrCat(name, " has no port ", number));
  }
  GLN_RETURN_IF_ERROR(check_port(name, number, attributes));
  GLN_ASSIGN_OR_RETURN(const ibv_gid_entry gid, choose_gid(device, name, number, attributes.gid_tbl_len, gid_index));
  Port port;
  port.device = name;
  port.port = number;
  port.gid_index = static_cast<int>(gid.gid_index);
  port.is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.address = address_of(gid.gid);
  if (port.address.ss_family != AF_UNSPEC) port.network_bits = network_bits_of(port.address);
  port.bits_per_second = rate_of(attributes);
  port.mtu_bytes = 128u << attributes.active_mtu;
  port.numa_node = numa_node_of(name);
  return port;
}

absl::Status add_ports(ibv_device* device, const DeviceChoice& choice, std::vector<Port>& ports) {
  const std::string name = ibv_get_device_name(device);
  const Device open(ibv_open_device(device));
  if (open == nullptr) return verbs_error(errno, absl::StrCat("can't open ", name));
  GLN_RETURN_IF_ERROR(check_limits(open.get(), name));
  ibv_device_attr limits{};
  ibv_query_device(open.get(), &limits);
  const uint8_t first = choice.port == 0 ? 1 : choice.port;
  const uint8_t last = choice.port == 0 ? limits.phys_port_cnt : choice.port;
  absl::Status why;
  const size_t before = ports.size();
  for (uint8_t number = first; number <= last; ++number) {
    auto port = try_port(open.get(), name, number, choice.gid_index);
    if (port.ok()) {
      ports.push_back(*std::move(port));
    } else {
      why.Update(port.status());
    }
  }
  return ports.size() > before ? absl::OkStatus() : why;
}

}  // namespace

// A GID ::ffff:a.b.c.d is an IPv4 address; any other GID that is not link-local is an IPv6 address.
sockaddr_storage address_of(const ibv_gid& gid) {
  sockaddr_storage storage{};
  in6_addr bits;
  std::memcpy(&bits, gid.raw, sizeof(bits));
  if (IN6_IS_ADDR_V4MAPPED(&bits)) {
    auto& four = reinterpret_cast<sockaddr_in&>(storage);
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, gid.raw + 12, sizeof(four.sin_addr));
  } else if (!IN6_IS_ADDR_LINKLOCAL(&bits)) {
    auto& six = reinterpret_cast<sockaddr_in6&>(storage);
    six.sin6_family = AF_INET6;
    six.sin6_addr = bits;
  }
  return storage;
}

bool is_active(const Port& port) {
  std::ifstream file(absl::StrCat("/sys/class/infiniband/", port.device, "/ports/", port.port, "/state"));
  int state = 0;
  return file >> state && state == IBV_PORT_ACTIVE;
}

absl::StatusOr<std::vector<DeviceChoice>> DeviceChoice::parse(absl::string_view text) {
  std::vector<DeviceChoice> choices;
  if (text.empty()) return choices;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(one, ':');
    int port = 0;
    int gid = -1;
    if (parts.size() > 3 || parts[0].empty() ||
        (parts.size() > 1 && (!absl::SimpleAtoi(parts[1], &port) || port < 1 || port > 255)) ||
        (parts.size() > 2 && (!absl::SimpleAtoi(parts[2], &gid) || gid < 0))) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected DEVICE, DEVICE:PORT or DEVICE:PORT:GID, such as mlx5_0:1:3; got '", one, "'"));
    }
    choices.push_back({std::string(parts[0]), static_cast<uint8_t>(port), gid});
  }
  return choices;
}

std::string Port::to_string() const { return absl::StrCat(device, ":", port, ":", gid_index); }

absl::StatusOr<std::vector<Port>> usable_ports(const std::vector<DeviceChoice>& choices) {
  const DeviceList list;
  if (list.devices == nullptr || list.count == 0) return absl::NotFoundError("this machine has no RDMA device");
  std::vector<Port> ports;
  std::vector<std::string> why;
  absl::Status first;
  const auto add = [&](ibv_device* device, const DeviceChoice& choice) {
    const absl::Status status = add_ports(device, choice, ports);
    if (status.ok()) return;
    first.Update(status);
    why.emplace_back(status.message());
  };
  for (int i = 0; i < list.count && choices.empty(); ++i) add(list.devices[static_cast<size_t>(i)], {});
  for (const DeviceChoice& choice : choices) {
    ibv_device** const end = list.devices.get() + list.count;
    ibv_device** const found = std::find_if(
        list.devices.get(), end, [&](ibv_device* device) { return choice.device == ibv_get_device_name(device); });
    if (found == end)
      return absl::NotFoundError(
          absl::StrCat("there is no RDMA device '", choice.device, "'; `rdma link` shows this machine's devices"));
    add(*found, choice);
  }
  if (!ports.empty() && (choices.empty() || why.empty())) return ports;
  return absl::Status(first.code(), absl::StrJoin(why, "; "));
}

}  // namespace gleaner::transport::rdma
