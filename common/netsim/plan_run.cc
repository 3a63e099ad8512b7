#include "common/netsim/plan_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/netsim/host_map.h"
#include "common/plan/partitioner.h"

namespace gleaner::netsim {
namespace {

constexpr uint64_t kTurnsPerProgress = 256;

class PlanRun {
 public:
  PlanRun(const plan::Plan& plan, const topology::Topology& topology, const std::vector<uint32_t>& host_of,
          FlowNetwork network)
      : plan_(plan),
        network_(std::move(network)),
        messages_(count_messages()),
        loads_(topology, {messages_}),
        contributions_(plan.partitions.size(), 0) {
    connect(host_of);
  }

  absl::StatusOr<RunResult> run(const Progress& progress);

 private:
  // The connections between one worker and one owner.
  struct Connections {
    uint32_t to_owner = 0;
    uint32_t to_worker = 0;
  };

  uint64_t count_messages() const;
  void connect(const std::vector<uint32_t>& host_of);
  const Connections& connections(uint32_t worker, uint32_t owner) const {
    return connections_[size_t{worker} * plan_.members.size() + owner];
  }
  absl::Status send(uint32_t partition, uint32_t worker, bool is_sum);
  absl::Status on_contribution(uint32_t partition);

  const plan::Plan& plan_;
  FlowNetwork network_;
  const uint64_t messages_;
  ChannelLoads loads_;
  std::vector<uint32_t> contributions_;   // by partition: workers whose contribution its owner has
  std::vector<Connections> connections_;  // by worker, then owner
};

uint64_t PlanRun::count_messages() const {
  uint64_t messages = 0;
  for (const plan::Partition& partition : plan_.partitions) {
    messages += uint64_t{2} * (plan_.workers - (partition.owner < plan_.workers ? 1 : 0));
  }
  return messages;
}

void PlanRun::connect(const std::vector<uint32_t>& host_of) {
  const std::vector<uint64_t> owned = plan::owned_bytes(plan_);
  connections_.resize(plan_.members.size() * plan_.workers);
  for (uint32_t worker = 0; worker < plan_.workers; ++worker) {
    for (uint32_t owner = 0; owner < plan_.members.size(); ++owner) {
      if (owner == worker || owned[owner] == 0) continue;
      const auto weight = static_cast<double>(owned[owner]);
      connections_[size_t{worker} * plan_.members.size() + owner] = {
          .to_owner = network_.connect(host_of[worker], host_of[owner], weight),
          .to_worker = network_.connect(host_of[owner], host_of[worker], weight)};
    }
  }
}

// The id of a message says which contribution or sum it is.
absl::Status PlanRun::send(uint32_t index, uint32_t worker, bool is_sum) {
  const plan::Partition& partition = plan_.partitions[index];
  const Connections& both = connections(worker, partition.owner);
  const uint64_t id = uint64_t{index} * 2 + is_sum;
  GLN_ASSIGN_OR_RETURN(const std::span<const uint32_t> channels,
                       network_.send(id, is_sum ? both.to_worker : both.to_owner, partition.bytes));
  loads_.add(0, channels, partition.bytes);
  return absl::OkStatus();
}

absl::Status PlanRun::on_contribution(uint32_t index) {
  if (++contributions_[index] < plan_.workers) return absl::OkStatus();
  for (uint32_t worker = 0; worker < plan_.workers; ++worker) {
    if (worker != plan_.partitions[index].owner) GLN_RETURN_IF_ERROR(send(index, worker, true));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> PlanRun::run(const Progress& progress) {
  for (uint32_t index = 0; index < plan_.partitions.size(); ++index) {
    for (uint32_t worker = 0; worker < plan_.workers; ++worker) {
      const bool own = worker == plan_.partitions[index].owner;
      GLN_RETURN_IF_ERROR(own ? on_contribution(index) : send(index, worker, false));
    }
  }
  std::vector<uint64_t> arrived;
  uint64_t done = 0;
  for (uint64_t turn = 1;; ++turn) {
    GLN_ASSIGN_OR_RETURN(const bool more, network_.advance(arrived));
    if (!more) break;
    for (const uint64_t id : arrived) {
      if (id % 2 == 0) GLN_RETURN_IF_ERROR(on_contribution(static_cast<uint32_t>(id / 2)));
    }
    done += arrived.size();
    arrived.clear();
    if (progress && turn % kTurnsPerProgress == 0) progress(static_cast<double>(done) / static_cast<double>(messages_));
  }
  const double seconds = network_.now();
  return RunResult{.seconds = seconds, .steps = {{seconds, loads_.worst().front()}}, .events = network_.events()};
}

}  // namespace

absl::StatusOr<RunResult> run_plan(const plan::Plan& plan, const topology::Network& network,
                                   const std::vector<uint32_t>& host_of, const Conditions& conditions,
                                   const Progress& progress) {
  GLN_RETURN_IF_ERROR(check_hosts("member", host_of, plan.members.size(), network.topology));
  if (!std::ranges::all_of(plan.members, &plan::Member::is_here)) {
    return absl::InvalidArgumentError("the plan has an empty place; give a plan whose members are all here");
  }
  GLN_ASSIGN_OR_RETURN(FlowNetwork flows, FlowNetwork::make(network, conditions));
  return PlanRun(plan, network.topology, host_of, std::move(flows)).run(progress);
}

}  // namespace gleaner::netsim
