// NodeProfile, gleaner.dev/v1alpha1, describes a machine and its spare resources. Only the machine's own agent writes
// it.
//
// crds/nodeprofile.yaml is the only source of the schema. A NodeProfile is cluster scoped, has the name of its node,
// and is owned by the node. All of its contents are in its status.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/api/meta.h"

namespace gleaner::api {

// Where a NIC's speed comes from; earlier values take precedence.
enum class SpeedSource { kFlag, kLabel, kSysfs, kMeasured, kUnknown };

struct Nic {
  std::string name;            // eth0
  std::string driver;          // "mlx5_core"; empty: virtual
  std::string pci_address;     // 0000:3b:00.0; empty: virtual
  std::string pci_switch;      // as of a Gpu
  int numa_node = -1;          // -1: unknown
  double bits_per_second = 0;  // each way; 0: unknown
  SpeedSource speed_source = SpeedSource::kUnknown;
  std::string rdma_device;     // "mlx5_0"; empty: none
  bool default_route = false;  // carries the node's traffic to other nodes
  bool operator==(const Nic&) const = default;
};

struct Gpu {
  std::string uuid, model, pci_address;
  uint64_t memory_bytes = 0;
  int numa_node = -1;
  // PCI address of the PCIe switch that is next to the CPU on the way to the device; empty: none is visible. All
  // devices behind a switch share its link to the CPU.
  std::string pci_switch;
  int nvlink_group = -1;              // GPUs with the same number reach each other through NVSwitches; -1: unknown
  double nvlink_bits_per_second = 0;  // each way, of all NVLinks to GPUs and NVSwitches together; 0: none, or unknown
  bool mig = false;                   // in MIG mode: its instances can't reach other GPUs' memory
  uint32_t mig_instances = 0;         // 0: none, or unknown
  bool operator==(const Gpu&) const = default;
};

// The NVLinks that join two GPUs directly, without an NVSwitch.
struct Nvlink {
  std::vector<std::string> gpus;  // uuids of the two GPUs
  uint32_t links = 0;
  double bits_per_second = 0;  // each way, of these links together; 0: unknown
  bool operator==(const Nvlink&) const = default;
};

// NCCL's distances between a GPU and a NIC, nearest first: the same device, one PCIe switch, several switches, through
// the host bridge, and through the interconnect of NUMA nodes.
enum class PathType { kLoc, kPix, kPxb, kPhb, kSys };

struct Path {
  std::string gpu;  // uuid
  std::string nic;  // name
  PathType type = PathType::kSys;
  bool operator==(const Path&) const = default;
};

struct Spare {
  double cpus = 0;  // cores, smoothed
  uint64_t memory_bytes = 0;
  double bits_per_second = 0;  // unused bandwidth in the busier direction, smoothed
  bool operator==(const Spare&) const = default;
};

// The latency between this node and another, as this node's agent measures it.
struct PeerLatency {
  std::string node;           // name of the other node
  absl::Duration round_trip;  // 10th percentile of a measurement, in whole nanoseconds
  uint32_t lost_percent = 0;  // share of questions without an answer
  absl::Time observed_time = absl::InfinitePast();
  bool operator==(const PeerLatency&) const = default;
};

// The bandwidth of the path between this node and another, as this node's agent measures it.
struct PeerBandwidth {
  std::string node;            // name of the other node
  double bits_per_second = 0;  // of the slower direction, above 0: a lower bound, since others may use the path
  absl::Time observed_time = absl::InfinitePast();
  bool operator==(const PeerBandwidth&) const = default;
};

struct NodeProfileStatus {
  absl::Time observed_time = absl::InfinitePast();
  std::string agent_version;
  double cpus = 0;  // hardware threads of the machine
  uint64_t memory_bytes = 0;
  uint32_t numa_nodes = 1;
  std::vector<Nic> nics;
  std::vector<Gpu> gpus;
  std::optional<std::vector<Nvlink>> nvlinks;  // an entry for each two GPUs with NVLinks; nullopt: unknown
  std::vector<Path> paths;
  double bits_per_second = 0;  // each way: the speed of the NIC with the default route; 0: unknown
  SpeedSource speed_source = SpeedSource::kUnknown;
  double used_cpus = 0;  // in use at the moment, not smoothed
  double used_bits_per_second = 0;
  double cpu_pressure = 0;  // PSI "some avg10", percent; -1: the kernel doesn't report it
  Spare spare;
  std::vector<PeerLatency> peers;              // the nearest first
  std::vector<PeerBandwidth> peer_bandwidths;  // in alphabetical order of their nodes
  std::vector<Condition> conditions;           // Ready, SpeedKnown
  bool operator==(const NodeProfileStatus&) const = default;
};

struct NodeProfile {
  ObjectMeta meta;
  NodeProfileStatus status;
  bool operator==(const NodeProfile&) const = default;
};

// Return the names in the schema: "Sysfs", "PIX".
absl::string_view name_of(SpeedSource source);
absl::string_view name_of(PathType type);

absl::StatusOr<NodeProfile> parse_node_profile(const nlohmann::json& object);
nlohmann::json to_json(const NodeProfile& profile);       // apiVersion, kind, metadata, status
nlohmann::json to_json(const NodeProfileStatus& status);  // contents of "status"

}  // namespace gleaner::api
