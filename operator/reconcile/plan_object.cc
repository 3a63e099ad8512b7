#include "operator/reconcile/plan_object.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/plan/model.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {
namespace {

types::PlanMember describe(const PodView& pod, double bits_per_second) {
  types::PlanMember member;
  member.name = absl::StrCat(pod.role, "-", pod.index);
  member.role = pod.role;
  member.pod = pod.name;
  member.node = pod.node;
  member.bits_per_second = bits_per_second;
  return member;
}

void take_states(const coordinator::JobState& session, std::vector<types::PlanMember>& members) {
  for (size_t i = 0; i < std::min(members.size(), session.members.size()); ++i) {
    const coordinator::MemberState& state = session.members[i];
    members[i].address = state.address;
    members[i].owned_bytes = state.owned_bytes;
    members[i].acknowledged_epoch = state.acknowledged_epoch;
    if (state.bits_per_second > 0) members[i].bits_per_second = state.bits_per_second;
  }
}

// Traffic by the model, and whose link takes longest.
void take_traffic(uint32_t workers, std::vector<types::PlanMember>& members) {
  plan::Fleet fleet;
  std::vector<uint64_t> owned;
  for (size_t i = 0; i < members.size(); ++i) {
    (i < workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second).push_back(members[i].bits_per_second);
    owned.push_back(members[i].owned_bytes);
  }
  const std::vector<double> traffic = plan::traffic_bytes(fleet, owned);
  size_t slowest = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].traffic_bytes = static_cast<uint64_t>(traffic[i]);
    if (traffic[i] / members[i].bits_per_second > traffic[slowest] / members[slowest].bits_per_second) slowest = i;
  }
  members[slowest].binds = members[slowest].traffic_bytes > 0;
}

void take_summary(const coordinator::JobState& session, types::ReductionPlan& plan) {
  const coordinator::Summary& summary = session.summary;
  plan.spec.epoch = session.epoch;
  plan.spec.tensors = summary.tensors;
  plan.spec.partitions = summary.partitions;
  plan.spec.bytes_per_step = static_cast<uint64_t>(summary.bytes_per_step);
  plan.spec.bound_seconds = summary.bound_seconds;
  plan.spec.bound_without_summers_seconds = summary.bound_seconds_without_summers;
  plan.status.committed_epoch = session.epoch;
  plan.status.steps = summary.steps;
  plan.status.step_communication_seconds = summary.step_communication_seconds;
  plan.status.goodput_bytes_per_second = summary.goodput_bytes_per_second;
  plan.status.efficiency = summary.efficiency;
}

}  // namespace

types::ReductionPlan make_plan_object(const Observed& observed, const std::vector<const PodView*>& members) {
  const types::TrainingJob& job = observed.job;
  types::ReductionPlan plan;
  plan.meta.name = job.meta.name;
  plan.meta.ns = job.meta.ns;
  plan.meta.labels = {{types::kJobLabel, job.meta.name}};
  plan.meta.owners = {{types::kApiVersion, "TrainingJob", job.meta.name, job.meta.uid, true}};
  plan.spec.attempt = job.status.attempt;
  const std::vector<double> bits = assumed_bits_per_second(observed, members);
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] != nullptr) plan.spec.members.push_back(describe(*members[i], bits[i]));
  }
  if (!observed.session.has_value()) return plan;
  take_states(*observed.session, plan.spec.members);
  take_summary(*observed.session, plan);
  for (const types::PlanMember& member : plan.spec.members) {
    plan.status.acknowledged += member.acknowledged_epoch >= plan.spec.epoch && plan.spec.epoch > 0;
  }
  if (plan.spec.bytes_per_step > 0) take_traffic(job.workers.replicas, plan.spec.members);
  return plan;
}

}  // namespace gleaner::reconcile
