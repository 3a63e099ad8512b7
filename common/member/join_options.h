// JoinOptions tells a member what it is, where its coordinator is, and how long it waits.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/control/identity.h"

namespace gleaner::member {

struct JoinOptions {
  control::Identity identity = {.job = "default"};  // Client: its role is not kObserver; Observer sets the role
  Address coordinator;
  std::string token;       // contents of the token file, whitespace trimmed
  std::string token_file;  // read for each connection that asks for a bearer token; empty: `token` is sent
  std::string ca_file;     // PEM, read for each connection: CAs for the coordinator's certificate; empty: no TLS
  absl::Duration timeout = absl::Seconds(60);  // until the job has begun
  // A tensor that is in no plan waits this long for a coordinator that can't be reached, before the job fails.
  absl::Duration plan_timeout = absl::Minutes(10);
};

}  // namespace gleaner::member
