// Keeps a State as the API server has it: nodes, profiles, and the pods of all jobs.
#pragma once

#include <memory>
#include <string>

#include "common/base/env.h"
#include "common/kube/client.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

class Feeds {
 public:
  // All outlive it.
  static std::unique_ptr<Feeds> start(const Env& env, kube::Client& client, State& state);
  virtual ~Feeds() = default;
  // What has not been listed yet, for people; empty: all is there.
  virtual std::string missing() const = 0;
};

}  // namespace gleaner::extender
