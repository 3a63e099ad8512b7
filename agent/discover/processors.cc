#include "agent/discover/processors.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace gleaner::discover {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};

}  // namespace

absl::StatusOr<Processors> read_processors(const HwlocSource& source) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return absl::InternalError("hwloc: no memory for a topology");
  const std::unique_ptr<hwloc_topology, Destroy> topology(raw);
  int result = 0;
  if (!source.xml.empty()) {
    result = hwloc_topology_set_xmlbuffer(raw, source.xml.c_str(), static_cast<int>(source.xml.size()) + 1);
  } else if (!source.synthetic.empty()) {
    result = hwloc_topology_set_synthetic(raw, source.synthetic.c_str());
  }
  if (result != 0) return absl::InvalidArgumentError(absl::StrCat("hwloc can't read this topology: ", strerror(errno)));
  // Counts the processors of the whole machine, not only those that the agent's own cgroup may use.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) {
    return absl::InternalError(absl::StrCat("hwloc can't load the machine's topology: ", strerror(errno)));
  }
  Processors processors;
  processors.cpus = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU);
  processors.numa_nodes = static_cast<uint32_t>(std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_NUMANODE)));
  processors.memory_bytes = hwloc_get_root_obj(raw)->total_memory;
  return processors;
}

}  // namespace gleaner::discover
