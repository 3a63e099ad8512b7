#include "common/api/node_profile.h"

#include <algorithm>

#include "common/api/fields.h"
#include "common/api/text.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

constexpr std::pair<absl::string_view, SpeedSource> kSpeedSources[] = {{"Flag", SpeedSource::kFlag},
                                                                       {"Label", SpeedSource::kLabel},
                                                                       {"Sysfs", SpeedSource::kSysfs},
                                                                       {"Measured", SpeedSource::kMeasured},
                                                                       {"Unknown", SpeedSource::kUnknown}};
constexpr std::pair<absl::string_view, PathType> kPathTypes[] = {{"LOC", PathType::kLoc},
                                                                 {"PIX", PathType::kPix},
                                                                 {"PXB", PathType::kPxb},
                                                                 {"PHB", PathType::kPhb},
                                                                 {"SYS", PathType::kSys}};

void read_nic(const Fields& fields, Nic& nic) {
  fields.text("name", nic.name);
  fields.text("driver", nic.driver);
  fields.text("pciAddress", nic.pci_address);
  fields.text("pciSwitch", nic.pci_switch);
  fields.number("numaNode", nic.numa_node);
  fields.whole("bitsPerSecond", nic.bits_per_second);
  fields.choice<SpeedSource>("speedSource", kSpeedSources, nic.speed_source);
  fields.text("rdmaDevice", nic.rdma_device);
  fields.flag("defaultRoute", nic.default_route);
}

json to_json(const Nic& nic) {
  json object = {{"name", required_text(nic.name, kMaxWord)},
                 {"bitsPerSecond", whole_number(nic.bits_per_second)},
                 {"speedSource", std::string(name_of(nic.speed_source))},
                 {"defaultRoute", nic.default_route}};
  if (!nic.driver.empty()) object["driver"] = shortened(nic.driver, kMaxWord);
  if (!nic.pci_address.empty()) object["pciAddress"] = shortened(nic.pci_address, kMaxWord);
  if (!nic.pci_switch.empty()) object["pciSwitch"] = shortened(nic.pci_switch, kMaxWord);
  if (nic.numa_node >= 0) object["numaNode"] = nic.numa_node;
  if (!nic.rdma_device.empty()) object["rdmaDevice"] = shortened(nic.rdma_device, kMaxWord);
  return object;
}

void read_gpu(const Fields& fields, Gpu& gpu) {
  fields.text("uuid", gpu.uuid);
  fields.text("model", gpu.model);
  fields.text("pciAddress", gpu.pci_address);
  fields.number("memoryBytes", gpu.memory_bytes);
  fields.number("numaNode", gpu.numa_node);
  fields.text("pciSwitch", gpu.pci_switch);
  fields.number("nvlinkGroup", gpu.nvlink_group);
  fields.whole("nvlinkBitsPerSecond", gpu.nvlink_bits_per_second);
  fields.flag("mig", gpu.mig);
  fields.number("migInstances", gpu.mig_instances);
}

json to_json(const Gpu& gpu) {
  json object = {{"uuid", required_text(gpu.uuid, kMaxId)}, {"memoryBytes", gpu.memory_bytes}};
  if (!gpu.model.empty()) object["model"] = shortened(gpu.model, kMaxId);
  if (!gpu.pci_address.empty()) object["pciAddress"] = shortened(gpu.pci_address, kMaxWord);
  if (gpu.numa_node >= 0) object["numaNode"] = gpu.numa_node;
  if (!gpu.pci_switch.empty()) object["pciSwitch"] = shortened(gpu.pci_switch, kMaxWord);
  if (gpu.nvlink_group >= 0) object["nvlinkGroup"] = gpu.nvlink_group;
  if (gpu.nvlink_bits_per_second > 0) object["nvlinkBitsPerSecond"] = whole_number(gpu.nvlink_bits_per_second);
  if (gpu.mig) object["mig"] = true;
  if (gpu.mig_instances > 0) object["migInstances"] = gpu.mig_instances;
  return object;
}

void read_nvlink(const Fields& fields, Nvlink& nvlink) {
  fields.texts("gpus", nvlink.gpus);
  fields.number("links", nvlink.links, 1);
  fields.whole("bitsPerSecond", nvlink.bits_per_second);
}

json to_json(const Nvlink& nvlink) {
  json gpus = json::array();
  for (const std::string& uuid : nvlink.gpus) gpus.push_back(required_text(uuid, kMaxId));
  return {{"gpus", std::move(gpus)}, {"links", nvlink.links}, {"bitsPerSecond", whole_number(nvlink.bits_per_second)}};
}

void read_path(const Fields& fields, Path& path) {
  fields.text("gpu", path.gpu);
  fields.text("nic", path.nic);
  fields.choice<PathType>("type", kPathTypes, path.type);
}

json to_json(const Path& path) {
  return {{"gpu", required_text(path.gpu, kMaxId)},
          {"nic", required_text(path.nic, kMaxWord)},
          {"type", std::string(name_of(path.type))}};
}

void read_spare(const Fields& fields, Spare& spare) {
  fields.quantity("cpus", spare.cpus);
  fields.number("memoryBytes", spare.memory_bytes);
  fields.whole("bitsPerSecond", spare.bits_per_second);
}

json to_json(const Spare& spare) {
  return {{"cpus", cpu_quantity(spare.cpus)},
          {"memoryBytes", spare.memory_bytes},
          {"bitsPerSecond", whole_number(spare.bits_per_second)},
          {"bandwidth", format_bits_per_second(spare.bits_per_second)}};
}

void read_peer(const Fields& fields, PeerLatency& peer) {
  fields.text("node", peer.node);
  int64_t nanoseconds = 0;
  fields.number("roundTripNanoseconds", nanoseconds);
  peer.round_trip = absl::Nanoseconds(nanoseconds);
  fields.number("lostPercent", peer.lost_percent, 0, 100);
  fields.time("observedTime", peer.observed_time);
}

json to_json(const PeerLatency& peer) {
  json object = {{"node", required_text(peer.node, kMaxName)},
                 {"roundTripNanoseconds", absl::ToInt64Nanoseconds(peer.round_trip)},
                 {"lostPercent", peer.lost_percent}};
  if (peer.observed_time != absl::InfinitePast()) object["observedTime"] = format_time(peer.observed_time);
  return object;
}

void read_peer_bandwidth(const Fields& fields, PeerBandwidth& peer) {
  fields.text("node", peer.node);
  fields.whole("bitsPerSecond", peer.bits_per_second);
  fields.time("observedTime", peer.observed_time);
}

json to_json(const PeerBandwidth& peer) {
  json object = {{"node", required_text(peer.node, kMaxName)}, {"bitsPerSecond", whole_number(peer.bits_per_second)}};
  if (peer.observed_time != absl::InfinitePast()) object["observedTime"] = format_time(peer.observed_time);
  return object;
}

void read_status(const Fields& fields, NodeProfileStatus& status) {
  fields.time("observedTime", status.observed_time);
  fields.text("agentVersion", status.agent_version);
  fields.quantity("cpus", status.cpus);
  fields.number("memoryBytes", status.memory_bytes);
  fields.number("numaNodes", status.numa_nodes);
  fields.list("nics", status.nics, read_nic);
  fields.list("gpus", status.gpus, read_gpu);
  if (fields.find("nvlinks") != nullptr) fields.list("nvlinks", status.nvlinks.emplace(), read_nvlink);
  fields.list("paths", status.paths, read_path);
  fields.whole("bitsPerSecond", status.bits_per_second);
  fields.choice<SpeedSource>("speedSource", kSpeedSources, status.speed_source);
  fields.quantity("usedCpus", status.used_cpus);
  fields.whole("usedBitsPerSecond", status.used_bits_per_second);
  status.cpu_pressure = -1;
  fields.decimal("cpuPressure", status.cpu_pressure);
  read_spare(fields.object("spare"), status.spare);
  fields.list("peers", status.peers, read_peer);
  fields.list("peerBandwidths", status.peer_bandwidths, read_peer_bandwidth);
  fields.list("conditions", status.conditions, read_condition);
}

// The longest lists that the schema allows.
constexpr size_t kMaxNics = 256;
constexpr size_t kMaxGpus = 64;
constexpr size_t kMaxNvlinks = kMaxGpus * (kMaxGpus - 1) / 2;
constexpr size_t kMaxPaths = 4096;
constexpr size_t kMaxPeers = 256;
constexpr size_t kMaxPeerBandwidths = 64;
constexpr size_t kMaxConditions = 16;

template <class Element>
json to_list(const std::vector<Element>& elements, size_t most) {
  json list = json::array();
  for (size_t i = 0; i < std::min(elements.size(), most); ++i) list.push_back(to_json(elements[i]));
  return list;
}

}  // namespace

absl::string_view name_of(SpeedSource source) { return name_in<SpeedSource>(kSpeedSources, source); }
absl::string_view name_of(PathType type) { return name_in<PathType>(kPathTypes, type); }

absl::StatusOr<NodeProfile> parse_node_profile(const json& object) {
  absl::StatusOr<ObjectMeta> meta = parse_meta(object);
  if (!meta.ok()) return meta.status();
  NodeProfile profile{.meta = *std::move(meta), .status = {}};
  absl::Status status;
  read_status(Fields(object, "", status).object("status"), profile.status);
  if (!status.ok()) return status;
  return profile;
}

json to_json(const NodeProfileStatus& status) {
  json object = {{"cpus", cpu_quantity(status.cpus)},
                 {"memoryBytes", status.memory_bytes},
                 {"numaNodes", status.numa_nodes},
                 {"nics", to_list(status.nics, kMaxNics)},
                 {"nicCount", status.nics.size()},
                 {"gpus", to_list(status.gpus, kMaxGpus)},
                 {"gpuCount", status.gpus.size()},
                 {"paths", to_list(status.paths, kMaxPaths)},
                 {"bitsPerSecond", whole_number(status.bits_per_second)},
                 {"speed", status.bits_per_second > 0 ? format_bits_per_second(status.bits_per_second) : "unknown"},
                 {"speedSource", std::string(name_of(status.speed_source))},
                 {"usedCpus", cpu_quantity(status.used_cpus)},
                 {"usedBitsPerSecond", whole_number(status.used_bits_per_second)},
                 {"spare", to_json(status.spare)},
                 {"peers", to_list(status.peers, kMaxPeers)},
                 {"peerBandwidths", to_list(status.peer_bandwidths, kMaxPeerBandwidths)},
                 {"conditions", to_list(status.conditions, kMaxConditions)}};
  if (status.nvlinks.has_value()) object["nvlinks"] = to_list(*status.nvlinks, kMaxNvlinks);
  if (status.observed_time != absl::InfinitePast()) object["observedTime"] = format_time(status.observed_time);
  if (!status.agent_version.empty()) object["agentVersion"] = shortened(status.agent_version, kMaxId);
  if (status.cpu_pressure >= 0) object["cpuPressure"] = decimal_text(status.cpu_pressure);
  return object;
}

json to_json(const NodeProfile& profile) {
  return {{"apiVersion", kApiVersion},
          {"kind", "NodeProfile"},
          {"metadata", to_json(profile.meta)},
          {"status", to_json(profile.status)}};
}

}  // namespace gleaner::api
