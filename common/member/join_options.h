// JoinOptions is the description of a program, and of the coordinator that it looks for, with which it joins a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/control/identity.h"

namespace gleaner::member {

struct JoinOptions {
  Address coordinator;
  std::string job = "default";
  std::string token;       // contents of the token file, whitespace trimmed
  std::string token_file;  // read for each connection that asks for a bearer token; empty: `token` is sent
  std::string ca_file;     // PEM, read for each connection: CAs for the coordinator's certificate; empty: no TLS
  control::Role role = control::Role::kWorker;  // Client: not kObserver
  std::optional<uint32_t> index;                // worker index, or summer index; a summer without one gets a free one
  uint32_t local_rank = 0;                      // workers
  uint32_t local_size = 1;
  bool reads_summary = false;          // as in control::Identity; Observer sets it
  std::string address;                 // address of this member's summer; empty for local ranks > 0
  std::vector<std::string> endpoints;  // addresses by which others reach that summer (common/transport/endpoint.h)
  std::string network;                 // network_id() of this process (common/base/own_network.h)
  double bits_per_second = 0;          // 0: unknown; the coordinator's --bandwidth takes precedence
  absl::Duration timeout = absl::Seconds(60);  // until the job has begun
  // A tensor that is in no plan waits this long for a coordinator that can't be reached, before the job fails.
  absl::Duration plan_timeout = absl::Minutes(10);
};

}  // namespace gleaner::member
