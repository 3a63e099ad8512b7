// Models of a job's strategies: the candidates for its tensors, and what each schedule does with a partition. The sizes
// of new partitions follow from both. With hundreds of workers it takes up to half a second to make them, so a
// ModelRequest has all that model() needs by value, and any thread may call it. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/collective/spec.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/plan/plan.h"
#include "common/strategy/candidates.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::strategy {

struct Models {
  // In the network of the plan, summers first, and among them the schedules of the plan. Empty if the request asks for
  // the cuts alone.
  std::vector<Candidate> candidates;
  plan::Fleet fleet;  // the bandwidths of the members, from which the sizes of partitions follow
  std::vector<std::pair<collective::Spec, plan::ScheduleCut>> cuts;

  // Returns the cuts of these schedules. Requires that there is one for each.
  std::vector<plan::ScheduleCut> cuts_of(std::span<const collective::Spec> schedules) const;
};

struct ModelRequest {
  plan::Plan plan;  // its members and schedules; without tensors
  // The network of the job; null: one switch, on which a message and its answer take `round_trip_seconds`.
  std::shared_ptr<const JobNetwork> network;
  std::vector<uint32_t> summers_at;  // as for network_of()
  double round_trip_seconds = 0;
  double overhead_seconds = 0;  // of a message at hosts for which `network` states none
  bool compares = true;         // false: only the cuts are needed

  // Returns whether a request for another plan would be the same, but for the round trip and the overhead.
  bool is_for(const plan::Plan& other) const { return has_members_of(other) && plan.schedules == other.schedules; }
  // Returns whether `models`, those for this request, serve another plan, too: the members that own partitions have the
  // same bandwidths, and there is a cut for each schedule.
  bool serves(const plan::Plan& other, const Models& models) const;
  bool has_members_of(const plan::Plan& other) const;
};

ModelRequest request_for(const plan::Plan& plan, std::shared_ptr<const JobNetwork> network, double round_trip_seconds,
                         double overhead_seconds, bool compares, std::vector<uint32_t> summers_at = {});

// Errors: those of candidates(), and InvalidArgument if a schedule of the plan does not serve its workers.
absl::StatusOr<Models> model(const ModelRequest& request);

// Asks for the times of tensors of all usual sizes, so that those who ask later do not wait for simulations. Ends early
// when `goes_on` returns false.
void warm_up(const Models& models, absl::FunctionRef<bool()> goes_on);

}  // namespace gleaner::strategy
