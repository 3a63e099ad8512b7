// What the operator wants to know of a pod, and no more: ten thousand of them are kept in memory.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "operator/types/meta.h"

namespace gleaner::reconcile {

struct PodView {
  enum class Phase { kPending, kRunning, kSucceeded, kFailed };
  // How a container ended that ended badly; of several the first.
  struct Exit {
    std::string container;
    int code = 0;
    std::string reason;  // "Error", "OOMKilled"
    absl::Time at = absl::UnixEpoch();
  };

  std::string name, ns, uid;
  std::string job, role;  // by label
  std::string owner_uid;  // of the TrainingJob that controls it
  uint32_t index = 0, attempt = 0;
  absl::Time created = absl::UnixEpoch();
  std::optional<absl::Time> deletion;  // when its grace period ends, once it has been told to go
  Phase phase = Phase::kPending;
  bool gated = false;                    // by kGangGate
  std::vector<std::string> other_gates;  // the user's
  int32_t priority = 0;
  std::string node, ip;
  std::string evicted_by;      // why the cluster took it: "Evicted", "PreemptionByScheduler"; empty: it did not
  std::string unschedulable;   // the scheduler's message
  std::string waiting_reason;  // why a container can't start: "ImagePullBackOff"
  std::string waiting_message;
  std::optional<Exit> exit;
  double bits_per_second = 0;  // the smaller of its bandwidth annotations; 0: none
  double cpus = 0;             // a summer's requests, kLeastCpus at least

  bool finished() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
};

// InvalidArgument names what is missing or malformed. A pod without Gleaner's labels has empty job and role.
absl::StatusOr<PodView> parse_pod(const nlohmann::json& object);

}  // namespace gleaner::reconcile
