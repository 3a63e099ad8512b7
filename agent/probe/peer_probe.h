// Measures now and then with another node's agent, and serves others that do, while the speed is not known otherwise.
//
// Two threads of its own: the measuring one ("gln-probe"), and MeasureServer's. Thread safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/env.h"

namespace gleaner::probe {

class PeerProbe {
 public:
  struct Options {
    Address listen;
    Address peers;       // a name that stands for all agents' addresses, such as a headless Service
    std::string secret;  // the same for all agents
    absl::Duration first = absl::Seconds(10);  // until the first one
    absl::Duration period = absl::Hours(1);    // after one that went well
    absl::Duration retry = absl::Minutes(2);   // after one that didn't
  };

  // Unavailable: can't listen there.
  static absl::StatusOr<std::unique_ptr<PeerProbe>> start(const Env& env, Options options);
  virtual ~PeerProbe() = default;  // waits for what runs: a measurement, or a name that is looked up

  virtual void set_needed(bool needed) = 0;    // whether to measure at all; at first not
  virtual double bits_per_second() const = 0;  // the greatest that was measured, since each is a lower bound; 0: none
  virtual Address address() const = 0;         // where it serves
};

}  // namespace gleaner::probe
