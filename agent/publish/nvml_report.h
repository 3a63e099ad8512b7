// NvmlReport tells when NVML begins to fail, fails in another way, or recovers, so that the agent, which asks NVML
// again and again, logs each change once. Used by one thread.
#pragma once

#include <optional>
#include <string>

#include "agent/discover/machine.h"

namespace gleaner::publish {

// Returns a sentence about NVML's failures on this machine. Empty: NVML reads all GPUs, or is not wanted.
std::string nvml_trouble(const discover::Machine& machine);

class NvmlReport {
 public:
  // Returns nvml_trouble() if it differs from that of the last call, before the first of which there is no trouble.
  std::optional<std::string> changed(const discover::Machine& machine);

 private:
  std::string told_;
};

}  // namespace gleaner::publish
