// Loads counts the bytes that each link of a machine carries in a step, each way, for each byte of a gradient.
//
// A step takes as long as its busiest link needs, since partitions follow each other and all links work at the same
// time: J = max t/b (BytePS §4.2.1). Both ways carry the same: results return on the links by which gradients left.
// Host memory counts reads and writes together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/machine/machine.h"

namespace gleaner::machine {

struct Step {
  double gradient_bytes = 1e9;  // M: of each GPU, above 0
  // Bytes on the machine's NICs each way, for each byte of the gradient. A worker sends and receives M. A summer in the
  // same machine brings this to 2(n-1)/n of n workers without CPU summers (§4.1, Eq. 6 with k = 0), which is nearly 2.
  // The only worker of a job sends nothing: 0.
  double network_share = 2;
};

enum class LinkKind { kGpu, kSwitch, kNic, kNvlink, kAcross, kInterconnect, kMemory };

struct Link {
  LinkKind kind = LinkKind::kGpu;
  std::string device;   // the GPU, switch or NIC whose link it is; empty: a link of the whole machine
  double bytes = 0;     // each way
  Bandwidth bandwidth;  // unknown: the link does not count in the time of a step
  double seconds() const { return bandwidth.is_known() ? 8 * bytes / bandwidth.bits_per_second : 0; }
};

// Returns the link in words: "GPU gpu0 - switch", "NIC eth0", "host memory".
std::string name_of(const Link& link);

class Loads {
 public:
  // The machine passes check(), and must outlive the Loads.
  explicit Loads(const Machine& machine);

  // Adds copies of this share of a gradient from a GPU to host memory and back.
  void copy_to_host(uint32_t gpu, double share);
  // Adds transfers between a GPU and others at its switch, in its place on PCIe alone.
  void add_gpu(uint32_t gpu, double share) { gpus_[gpu] += share; }
  void add_switch(uint32_t at, double share) { switches_[at] += share; }
  void add_nic(uint32_t nic, double share) { nics_[nic] += share; }
  void add_nvlink(uint32_t gpu, double share) { nvlink_[gpu] += share; }
  // Adds a stream between GPUs that share no PCIe switch, without the links of switches and GPUs on its way.
  void add_across(double share) { across_ += share; }
  void add_interconnect(double share) { interconnect_ += share; }
  // Adds transfers between a NIC and host memory.
  void send_from_host(uint32_t nic, double share);

  // Returns all links that carry something.
  std::vector<Link> links(double gradient_bytes) const;

  // Returns the NUMA node of the host memory in which sums are made: that of the first NIC.
  int host_node() const;

 private:
  void cross(int numa_node, double share);  // between this node and the host memory's
  double memory_share() const;

  const Machine& machine_;
  std::vector<double> gpus_, switches_, nics_, nvlink_;
  double across_ = 0, interconnect_ = 0;
  double copied_ = 0;  // to host memory, and as much back
  double sent_ = 0;    // from host memory to NICs, and as much back
};

}  // namespace gleaner::machine
