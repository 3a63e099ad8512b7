#include "summation-service/engine/sums.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/differing_operations.h"
#include "common/plan/successor.h"
#include "summation-service/engine/checks.h"
#include "summation-service/engine/groups.h"

namespace gleaner::engine {

Sums::Sums(const Identity& identity, const kernels::Kernels* kernels, BufferPool* pool, MemoryBudget* memory,
           Releases* releases)
    : identity_(identity),
      memory_(memory),
      releases_(releases),
      gathering_(kernels, pool, memory),
      retained_(memory, releases) {}

void Sums::follow(std::shared_ptr<const plan::Plan> plan) {
  const uint32_t before = plan_ == nullptr ? 0 : plan_->epoch;
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    if (plan::has_moved(plan->partitions[i], before)) forget(i);
  }
  plan_ = std::move(plan);
  groups_ = groups_of(*plan_);
  memory_->set_least(largest_sums(*plan_, groups_, identity_.self));
  partitions_.resize(plan_->partitions.size());
  gathering_.resize(plan_->workers, partitions_.size());
  retained_.resize(plan_->workers, partitions_.size());
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    const plan::Partition& partition = plan_->partitions[i];
    const plan::Tensor& tensor = plan_->tensors[partition.tensor];
    if (partition.owner != identity_.self || tensor.accumulates) continue;
    // A first owner needs no takeover: all workers are at step 0.
    if (partition.since == tensor.since || !plan::has_moved(partition, before)) continue;
    partitions_[i].takeover = std::make_unique<Takeover>(plan_->workers, plan_->contributors(tensor));
  }
}

// Drops the state of a partition that has a new owner. The new owner may be this summer again, after another owner had
// the partition.
void Sums::forget(uint32_t index) {
  if (partitions_[index].takeover != nullptr) GLN_RARE("engine: a partition moves away during its takeover");
  if (gathering_.is_gathering(index)) {
    GLN_RARE("engine: a partition moves away between contributions");
    gathering_.drop(index);
  }
  if (retained_.has(index)) retained_.drop(index);
  partitions_[index] = {};
}

absl::Status Sums::check_progress(uint32_t worker, const wire::PartitionKey& key) const {
  const Progress& progress = partitions_[index_of(key)];
  if (progress.takeover != nullptr) {
    const Takeover& takeover = *progress.takeover;
    const bool is_possible =
        takeover.has_heard(worker) ? key.step <= progress.step : takeover.fits(key.step, progress.step);
    if (is_possible) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " is at ", describe(*plan_, key),
                                                      ", but other workers are at steps up to ", progress.step,
                                                      ", and no two workers are more than one step apart"));
  }
  if (key.step <= progress.step) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " is at ", describe(*plan_, key),
                                                    ", but step ", progress.step, " is not summed yet"));
}

// Checks that a push has the same op as the contributions that have arrived.
absl::Status Sums::check_op(uint32_t worker, const wire::Header& header) const {
  const uint32_t index = index_of(key_of(header));
  if (header.step != partitions_[index].step || !gathering_.is_gathering(index)) return absl::OkStatus();
  const ReduceOp op = gathering_.op(index);
  if (op == header.op) return absl::OkStatus();
  return plan::differing_operations(*plan_, header.tensor, header.step, {worker, header.op},
                                    {gathering_.first_contributor(index), op});
}

absl::Status Sums::push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  GLN_RETURN_IF_ERROR(check_progress(worker, key));
  GLN_RETURN_IF_ERROR(check_op(worker, header));
  const uint32_t index = index_of(key);
  const Progress& progress = partitions_[index];
  // A push also acknowledges all results before its step, even if it is deferred below: that may free memory.
  if (progress.takeover == nullptr || !progress.takeover->has_heard(worker)) acknowledge(worker, key, actions);
  if (key.step < progress.step) {
    on_repeated_push(worker, index, key.step, actions);
    return absl::OkStatus();
  }
  if (gathering_.has_contribution(index, worker)) {
    GLN_RARE("engine: a contribution comes twice");
    ++counters_.duplicates;
    if (!GLN_MUTATION("a contribution counts twice")) return absl::OkStatus();
  }
  const plan::Partition& partition = plan_->partitions[index];
  const GatheringSums::Shape shape{groups_[key.tensor], plan_->contributors(tensor_of(index)),
                                   plan_->push_bytes(partition), partition.bytes};
  if (!gathering_.is_gathering(index) && !gathering_.begin(index, header.op, shape)) {
    ++counters_.deferred;
    actions.sends.push_back({worker, make_header(identity_, plan_->epoch, wire::FrameType::kDefer, key), {}});
    return absl::OkStatus();
  }
  ++counters_.contributions;
  actions.has_contributed = true;
  if (gathering_.add(index, worker, std::move(payload))) finish_step(index, actions);
  return absl::OkStatus();
}

// Handles a push of a step whose result this owner has made.
void Sums::on_repeated_push(uint32_t worker, uint32_t index, uint64_t step, Actions& actions) {
  ++counters_.duplicates;
  if (step + 1 != partitions_[index].step || !retained_.is_lacked_by(index, worker)) return;
  GLN_RARE("engine: a result is sent again");
  ++counters_.resent;
  send_result(worker, index, 0, actions);
}

// Makes the sum of the current step and sends it to every contributor.
void Sums::finish_step(uint32_t index, Actions& actions) {
  const ReduceOp op = gathering_.op(index);
  const plan::Tensor& tensor = tensor_of(index);
  const uint32_t ranks =
      GLN_MUTATION("an average of a group is over all ranks") ? plan_->ranks() : plan_->ranks(tensor);
  Buffer sum = gathering_.make_sum(index, plan_->encoding(tensor).contribution, tensor.type, ranks);
  const uint32_t crc = wire::crc32c(sum.bytes());
  ++counters_.sums;
  counters_.summed_bytes += sum.size();
  actions.has_summed = true;
  // Every contributor has pushed this step and thereby acknowledged the previous result, so no result is retained now.
  retained_.retain(index, op, {groups_[plan_->partitions[index].tensor], plan_->contributors(tensor)}, std::move(sum));
  ++partitions_[index].step;
  plan_->for_each_contributor(tensor, [&](uint32_t worker) { send_result(worker, index, crc, actions); });
}

void Sums::acknowledge(uint32_t worker, const wire::PartitionKey& key, Actions& actions) {
  const uint32_t index = index_of(key);
  if (partitions_[index].takeover != nullptr) return hear(worker, index, key.step, actions);
  if (key.step == partitions_[index].step) retained_.acknowledge(index, worker);
}

// Handles, during a takeover, the report of `worker` that it has all results before `next`.
void Sums::hear(uint32_t worker, uint32_t index, uint64_t next, Actions& actions) {
  Progress& progress = partitions_[index];
  Takeover& takeover = *progress.takeover;
  if (takeover.has_heard(worker)) {
    // The worker repeats its report because it has connected again, so the kFetch or its answer may be lost.
    if (takeover.asked() == worker) {
      GLN_RARE("engine: a result is requested again");
      fetch(index, actions);
    }
    return;
  }
  const bool leads = takeover.hear(worker, next, progress.step);
  if (leads && gathering_.is_gathering(index)) {
    GLN_RARE("engine: contributions to a finished step are dropped");
    gathering_.drop(index);
  }
  if (leads) progress.step = next;
  if (!takeover.complete() && !GLN_MUTATION("a takeover does not wait for the last worker")) return;
  ++counters_.takeovers;
  if (takeover.behind() == 0) {
    progress.takeover = nullptr;
    return;
  }
  retained_.expect(index, plan_->partitions[index].bytes, takeover.ahead(), takeover.behind());
  fetch(index, actions);
}

// Sends a kFetch for the last result to a worker that has the result.
void Sums::fetch(uint32_t index, Actions& actions) {
  Takeover& takeover = *partitions_[index].takeover;
  takeover.ask(takeover.source());
  const wire::PartitionKey key = key_of(*plan_, index, partitions_[index].step - 1);
  actions.sends.push_back({takeover.asked(), make_header(identity_, plan_->epoch, wire::FrameType::kFetch, key), {}});
}

absl::Status Sums::hand(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  const uint32_t index = index_of(key);
  Progress& progress = partitions_[index];
  if (key.step >= progress.step) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " handed on ", describe(*plan_, key),
                                                      ", but this owner did not ask for that result"));
  }
  const bool is_awaited = progress.takeover != nullptr && retained_.has(index) && key.step + 1 == progress.step;
  if (!is_awaited) {
    GLN_RARE("engine: a result is handed on twice");
    ++counters_.duplicates;
    return absl::OkStatus();
  }
  ++counters_.handed;
  progress.takeover = nullptr;
  retained_.receive(index, header.op, std::move(payload));
  plan_->for_each_contributor(tensor_of(index), [&](uint32_t contributor) {
    if (retained_.is_lacked_by(index, contributor)) send_result(contributor, index, header.payload_crc, actions);
  });
  return absl::OkStatus();
}

// Sends a result to a worker. `crc` is the checksum of the result, or 0 if it is not known; then it is computed again
// for each worker.
void Sums::send_result(uint32_t worker, uint32_t index, uint32_t crc, Actions& actions) const {
  const RetainedResults::Result& result = retained_.at(index);
  const wire::PartitionKey key = key_of(*plan_, index, partitions_[index].step - 1);
  wire::Header header = make_header(identity_, plan_->epoch, wire::FrameType::kResult, key);
  header.data_type = plan_->tensors[key.tensor].type;
  header.op = result.op;
  header.sequence = result.number;
  header.confirmed = releases_->first_unreleased();
  header.payload_bytes = static_cast<uint32_t>(result.values.size());
  header.payload_crc = crc;
  actions.sends.push_back({worker, header, result.values});
}

bool Sums::is_released(const wire::PartitionKey& key) const {
  const uint32_t index = index_of(key);
  const Progress& progress = partitions_[index];
  return progress.takeover == nullptr && !retained_.has(index) && key.step <= progress.step;
}

bool Sums::is_idle_without(uint32_t worker) const {
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    if (retained_.has(i) || gathering_.has_contribution(i, worker)) return false;
  }
  return true;
}

}  // namespace gleaner::engine
