// The messages of a member that has joined, to its coordinator. Plain values; coordinator.proto says when each is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/control/heartbeat.h"
#include "common/control/report.h"
#include "common/plan/plan.h"

namespace gleaner::control {

struct Declare {
  std::vector<plan::Tensor> tensors;        // newly declared
  std::vector<plan::Operation> operations;  // of the first push_pulls of tensors declared here or before
  friend bool operator==(const Declare&, const Declare&) = default;
};
struct Acknowledgement {
  uint32_t epoch = 0;
  friend bool operator==(const Acknowledgement&, const Acknowledgement&) = default;
};
struct Refusal {
  uint32_t epoch = 0;
  absl::Status why;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};
// The answer to Inquire.
struct Begun {
  std::string tensor;
  uint64_t push_pulls = 0;  // number of push_pulls of that tensor that have begun on this rank
  friend bool operator==(const Begun&, const Begun&) = default;
};
// The answer to CountPushPulls.
struct PushPulls {
  uint32_t epoch = 0;            // of the plan in force at the rank
  std::vector<uint64_t> counts;  // by tensor of that plan: number of its push_pulls that have begun on this rank
  friend bool operator==(const PushPulls&, const PushPulls&) = default;
};
// The sender can't go on with `member`, an index in the plan of `epoch`, which the sender follows.
struct Fault {
  static constexpr uint32_t kItself = UINT32_MAX;  // the sender can't go on, whatever the other members do
  uint32_t member = 0;
  uint32_t epoch = 0;
  absl::Status why;
  friend bool operator==(const Fault&, const Fault&) = default;
};
struct Leave {
  absl::Status status;
  uint32_t epoch = 0;  // of the plan that the member follows
  bool again = false;  // the worker wants to take part in the next round
  friend bool operator==(const Leave&, const Leave&) = default;
};
// The answer to Recall.
struct Recalled {
  std::shared_ptr<const plan::Plan> plan;  // in force; never null
  friend bool operator==(const Recalled& a, const Recalled& b) { return *a.plan == *b.plan; }
};

using MemberMessage =
    std::variant<Heartbeat, Declare, Acknowledgement, Refusal, Report, Begun, PushPulls, Fault, Leave, Recalled>;

}  // namespace gleaner::control
