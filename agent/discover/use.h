// What of the machine is in use: counters and gauges that change from second to second.
//
// cgroup v1 and v2 are told apart by what is there. `cgroup_root` is what the kubelet calls --cgroup-root: "/" on
// nearly every machine, and then the whole machine's use counts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/discover/network.h"
#include "agent/discover/tree.h"

namespace gleaner::discover {

// The kubelet's cgroup root as the cgroup of one of its pods' processes shows it (proc/PID/cgroup): what is before
// "/kubepods". "/" where nothing is, or where the process sees no cgroups but its own.
std::string cgroup_root_of(absl::string_view cgroups);

// CPU seconds used so far: of cgroup_root (v1: cpuacct.usage, v2: cpu.stat), else of /proc/stat. None: neither is
// there.
std::optional<double> read_cpu_seconds(const Tree& tree, absl::string_view cgroup_root);

// PSI "some avg10" of the CPU, in percent. None: this kernel doesn't count it.
std::optional<double> read_cpu_pressure(const Tree& tree);

std::optional<double> read_available_memory(const Tree& tree);

struct PodUse {
  std::optional<double> cpu_seconds;
  double memory_bytes = 0;
  std::optional<Traffic> traffic;  // over the pod's own network interfaces, without lo
};

// Finds pods by their uid, in cgroups and in processes' cgroup files, and remembers where they are. One thread.
class PodFinder {
 public:
  PodFinder(Tree tree, absl::string_view cgroup_root);

  // In the order of `uids`. A pod whose cgroup isn't found has an empty use. `own_network` as long as `uids`: false for
  // pods on the host's network, whose traffic can't be told from others'.
  std::vector<PodUse> read(const std::vector<std::string>& uids, const std::vector<bool>& own_network);

 private:
  struct Place {
    std::string cpu_folder, memory_folder;
    std::string process;  // "proc/1234", of any process in the pod
  };

  void find_processes();
  bool process_is_of(const Place& place, const std::string& uid) const;

  const Tree tree_;
  const std::string cgroup_root_;
  std::map<std::string, Place> places_;  // by uid
};

}  // namespace gleaner::discover
