// Reads processors, memory and NUMA nodes by hwloc.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gleaner::discover {

// The source that hwloc reads: the running machine if both are empty, an XML export, or a synthetic description.
struct HwlocSource {
  std::string xml;        // the document itself
  std::string synthetic;  // "pack:2 [numa(memory=512GB)] core:56 pu:2"
};

struct Processors {
  double cpus = 0;  // hardware threads, which Kubernetes calls CPUs
  uint64_t memory_bytes = 0;
  uint32_t numa_nodes = 1;
};

// Returns the processors. InvalidArgument: hwloc can't read the XML or the description. Internal: hwloc fails on this
// machine.
absl::StatusOr<Processors> read_processors(const HwlocSource& source);

}  // namespace gleaner::discover
