// ProgramsDriver finds the CUDA driver that the program has loaded into this process, before Gleaner itself uses a GPU:
// so memory of a GPU that is passed as the host's is refused, and not read. It neither loads the driver nor starts
// CUDA, which a program on a machine with GPUs may not want. Belongs to one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm-lib/device/driver.h"

namespace gleaner::device {

class ProgramsDriver {
 public:
  explicit ProgramsDriver(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
  // Returns null if the process has no driver, or one that is too old for Gleaner. Looks again only if the process has
  // loaded libraries since the last call.
  const Driver* find();

 private:
  const std::string library_;
  unsigned long long libraries_ = 0;  // loaded so far, at the last call
  std::shared_ptr<const Driver> driver_;
};

}  // namespace gleaner::device
