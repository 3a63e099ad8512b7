// Config holds a rank's settings. read_config() takes each from gln_options, else from the environment, else the
// default. No other file of the library reads the environment. docs/cli.md#environment lists the variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm-lib/include/gleaner/gleaner.h"
#include "common/base/address.h"
#include "common/base/log.h"
#include "common/kernels/kernels.h"
#include "common/transport/factory/factory.h"

namespace gleaner::runtime {

struct Config {
  Address coordinator;                               // GLEANER_COORDINATOR
  std::string job = "default";                       // GLEANER_JOB
  uint32_t worker = 0;                               // GLEANER_WORKER
  uint32_t local_rank = 0;                           // GLEANER_LOCAL_RANK, else torchrun's LOCAL_RANK
  uint32_t local_size = 1;                           // GLEANER_LOCAL_SIZE, else torchrun's LOCAL_WORLD_SIZE
  Address address;                                   // GLEANER_ADDRESS: where this worker's summer listens
  std::string advertise;                             // host that others are told; empty: that of `address`
  std::string token_file;                            // GLEANER_TOKEN_FILE
  std::string token;                                 // contents of token_file
  std::string ca_file;                               // GLEANER_CA_FILE; empty: no TLS
  absl::Duration open_timeout = absl::Seconds(60);   // GLEANER_OPEN_TIMEOUT, seconds
  absl::Duration plan_timeout = absl::Minutes(10);   // GLEANER_PLAN_TIMEOUT, seconds
  double bits_per_second = 0;                        // GLEANER_BANDWIDTH; 0: the coordinator's --bandwidth
  uint64_t window_bytes = 0;                         // GLEANER_WINDOW; 0: plan::window_bytes() decides
  uint64_t summer_memory_bytes = uint64_t{1} << 30;  // GLEANER_SUMMER_MEMORY: limit of the colocated summer
  uint64_t gpu_memory_bytes = uint64_t{1} << 30;     // GLEANER_GPU_MEMORY: limit for sums of local ranks on their GPUs
  std::string kernel;                                // GLEANER_KERNEL
  transport::Settings transports;                    // GLEANER_TRANSPORTS, GLEANER_SHM_DIR, GLEANER_RDMA_*
  std::optional<Address> metrics;                    // GLEANER_METRICS: address at which Prometheus metrics are served
  LogLevel log_level = LogLevel::kWarning;           // GLEANER_LOG_LEVEL
};

// Completes an address without a host, or with one that stands for all addresses of the machine, by the host from which
// this machine sends to the coordinator. If that is not known, e.g. since the coordinator's name is not known yet, the
// address becomes a loopback address.
void complete_address(Config& config);

// Chooses the kernels that GLEANER_KERNEL names. InvalidArgument: this processor has no such kernels.
absl::StatusOr<kernels::Kernels> read_kernels();

// Reads all settings and the token file. InvalidArgument names the variable and says how to write its value.
absl::StatusOr<Config> read_config(const gln_options& options);

}  // namespace gleaner::runtime
