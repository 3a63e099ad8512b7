// PodView has the fields of a pod that the operator uses, and no others, since the operator holds ten thousand pods in
// memory.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/api/meta.h"

namespace gleaner::reconcile {

struct PodView {
  enum class Phase { kPending, kRunning, kSucceeded, kFailed };
  // The failure of a container; the earliest one if several containers failed.
  struct Exit {
    std::string container;
    int code = 0;
    std::string reason;  // "Error", "OOMKilled"
    absl::Time at = absl::UnixEpoch();
  };

  // The reasons for which a pod does not run yet.
  struct Obstacles {
    bool gated = false;                    // the pod has the scheduling gate kGangGate
    std::vector<std::string> other_gates;  // scheduling gates of the user
    std::string unschedulable;             // the scheduler's message if it finds no node for the pod
    std::string waiting_reason;            // the reason for which a container can't start: "ImagePullBackOff"
    std::string waiting_message;
  };
  // The reasons for which a pod has failed or will fail.
  struct Ending {
    // The reason for which the cluster ended the pod: "PreemptionByScheduler", "NodeShutdown"; empty: it did not.
    std::string evicted_by;
    // The kubelet's reason for which the pod failed, if it is neither of the cluster nor of a container: it refused the
    // pod ("OutOfcpu"), or evicted it for what the pod itself used ("Evicted"). Empty: there is none.
    std::string refused_by;
    std::string refusal;  // the kubelet's message about it
    std::optional<Exit> exit;
  };

  std::string name, ns, uid;
  std::string job, role;  // from its labels
  std::string owner_uid;  // uid of the TrainingJob that controls it
  uint32_t index = 0, attempt = 0;
  std::optional<uint32_t> rank;  // of its label: the rank of the worker's local rank 0
  absl::Time created = absl::UnixEpoch();
  std::optional<absl::Time> deletion;  // the end of the pod's grace period, once it is being deleted
  Phase phase = Phase::kPending;
  Obstacles obstacles;
  Ending ending;
  int32_t priority = 0;
  std::string node;            // empty: the pod is not bound
  double bits_per_second = 0;  // the smaller of the pod's bandwidth annotations; 0: it has none
  double cpus = 0;             // requests of a summer, at least kLeastCpus

  bool finished() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
  // The pod runs or will run, and is not being deleted.
  bool alive() const { return !finished() && !deletion.has_value(); }
};

// Returns the view of a pod. InvalidArgument: a field is missing or malformed; the message names it. `job` and `role`
// are empty for a pod without Gleaner's labels.
absl::StatusOr<PodView> parse_pod(const nlohmann::json& object);

}  // namespace gleaner::reconcile
