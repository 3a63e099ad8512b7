// The extender's HTTP interface: POST /filter and /prioritize, GET /healthz and /readyz, over a State that somebody
// else feeds.
//
// 400 and a reason: the body isn't what kube-scheduler sends. Pods that are not ours pass /filter whole and have 0
// everywhere. Metrics: docs/metrics.md, gleaner_extender_*.
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

class Extender {
 public:
  struct Options {
    Address listen;
    std::vector<std::string> topology;           // node labels, widest first
    size_t max_body_bytes = size_t{64} << 20;    // 5,000 whole nodes are about 40 MB; their names 0.15
    std::function<std::string()> why_not_ready;  // empty: ready
  };
  // All outlive the extender. Unavailable: can't listen there.
  static absl::StatusOr<std::unique_ptr<Extender>> start(const Env& env, State& state, prometheus::Registry& registry,
                                                         Options options);
  virtual ~Extender() = default;  // answers what it has begun
  virtual Address address() const = 0;
};

}  // namespace gleaner::extender
