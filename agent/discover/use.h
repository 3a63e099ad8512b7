// Functions that read the use of the machine: counters and gauges that change from second to second.
//
// The functions detect whether the machine has cgroup v1 or v2. `cgroup_root` is the kubelet's --cgroup-root. It is "/"
// on nearly every machine; then the use is that of the whole machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/discover/network.h"
#include "agent/discover/tree.h"

namespace gleaner::discover {

// Returns the kubelet's cgroup root, given /proc/PID/cgroup of a process in one of its pods: the part before
// "/kubepods". Returns "/" if that part is empty, or if the process sees only its own cgroups.
std::string cgroup_root_of(absl::string_view cgroups);

// Returns the CPU seconds used so far in cgroup_root (v1: cpuacct.usage, v2: cpu.stat), or else those in /proc/stat;
// nullopt if neither can be read.
std::optional<double> read_cpu_seconds(const Tree& tree, absl::string_view cgroup_root);

// Returns PSI "some avg10" of the CPU in percent; nullopt if the kernel doesn't report it.
std::optional<double> read_cpu_pressure(const Tree& tree);

std::optional<double> read_available_memory(const Tree& tree);

struct PodUse {
  std::optional<double> cpu_seconds;
  double memory_bytes = 0;
  std::optional<Traffic> traffic;  // of the pod's own network interfaces, without lo
};

// PodFinder finds pods by uid in cgroups and in processes' cgroup files, and caches their paths. Used by one thread.
class PodFinder {
 public:
  PodFinder(Tree tree, absl::string_view cgroup_root);

  // Returns the use of each pod, in the order of `uids`. The use of a pod whose cgroup is not found is empty.
  // `own_network` is as long as `uids`, and false for pods on the host's network, whose traffic can't be separated from
  // other traffic.
  std::vector<PodUse> read(const std::vector<std::string>& uids, const std::vector<bool>& own_network);

 private:
  struct PodPaths {
    std::string cpu_folder, memory_folder;
    std::string process;  // "proc/1234": any process in the pod
  };

  void find_processes();
  bool process_is_of(const PodPaths& paths, const std::string& uid) const;

  const Tree tree_;
  const std::string cgroup_root_;
  std::map<std::string, PodPaths> paths_;  // by uid
};

}  // namespace gleaner::discover
