#include "common/netsim/plan_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/netsim/host_map.h"
#include "common/netsim/processors.h"
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
        processors_(topology, host_of),
        messages_(count_messages()),
        loads_(topology, {messages_}),
        contributions_(plan.partitions.size(), 0) {
    connect(host_of);
  }

  absl::StatusOr<RunResult> run(const Progress& progress);

 private:
  // A message between a worker and the owner of a partition.
  struct Exchange {
    uint32_t partition = 0;
    uint32_t worker = 0;
    bool is_sum = false;
  };
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
  // A message's number says which contribution or sum it is.
  uint64_t number_of(uint32_t partition, uint32_t worker, bool is_sum) const {
    return (uint64_t{partition} * plan_.workers + worker) * 2 + is_sum;
  }
  Exchange exchange_of(uint64_t message) const;
  // Gives work to the processor of a member.
  absl::Status give(uint32_t member, Processors::Work work, uint64_t id) {
    return processors_.give(member, {work, id}, network_.now(), [this](auto done) { return carry_out(done); });
  }
  // A member's processor has taken the gradients over, has sent a message, or has received one.
  absl::Status carry_out(Processors::Done done);
  absl::Status begin(uint32_t worker);
  absl::Status hand_over(uint64_t message);
  absl::Status receive(uint64_t message);
  absl::Status on_contribution(uint32_t partition);

  const plan::Plan& plan_;
  FlowNetwork network_;
  Processors processors_;  // by member
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

PlanRun::Exchange PlanRun::exchange_of(uint64_t message) const {
  const uint64_t pair = message / 2;
  return {static_cast<uint32_t>(pair / plan_.workers), static_cast<uint32_t>(pair % plan_.workers), message % 2 == 1};
}

absl::Status PlanRun::begin(uint32_t worker) {
  for (uint32_t partition = 0; partition < plan_.partitions.size(); ++partition) {
    const bool own = worker == plan_.partitions[partition].owner;
    GLN_RETURN_IF_ERROR(own ? on_contribution(partition)
                            : give(worker, Processors::Work::kSend, number_of(partition, worker, false)));
  }
  return absl::OkStatus();
}

absl::Status PlanRun::carry_out(Processors::Done done) {
  switch (done.work) {
    case Processors::Work::kCall:
      return begin(static_cast<uint32_t>(done.id));
    case Processors::Work::kSend:
      return hand_over(done.id);
    case Processors::Work::kReceive:
      return receive(done.id);
  }
  return absl::OkStatus();
}

absl::Status PlanRun::hand_over(uint64_t message) {
  const Exchange exchange = exchange_of(message);
  const plan::Partition& partition = plan_.partitions[exchange.partition];
  const Connections& both = connections(exchange.worker, partition.owner);
  GLN_ASSIGN_OR_RETURN(const std::span<const uint32_t> channels,
                       network_.send(message, exchange.is_sum ? both.to_worker : both.to_owner, partition.bytes));
  loads_.add(0, channels, partition.bytes);
  return absl::OkStatus();
}

absl::Status PlanRun::receive(uint64_t message) {
  const Exchange exchange = exchange_of(message);
  return exchange.is_sum ? absl::OkStatus() : on_contribution(exchange.partition);
}

absl::Status PlanRun::on_contribution(uint32_t index) {
  if (++contributions_[index] < plan_.workers) return absl::OkStatus();
  for (uint32_t worker = 0; worker < plan_.workers; ++worker) {
    if (worker != plan_.partitions[index].owner)
      GLN_RETURN_IF_ERROR(give(plan_.partitions[index].owner, Processors::Work::kSend, number_of(index, worker, true)));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> PlanRun::run(const Progress& progress) {
  for (uint32_t worker = 0; worker < plan_.workers; ++worker) {
    GLN_RETURN_IF_ERROR(give(worker, Processors::Work::kCall, worker));
  }
  std::vector<uint64_t> arrived;
  uint64_t done = 0;
  for (uint64_t turn = 1;; ++turn) {
    GLN_ASSIGN_OR_RETURN(const bool more, network_.advance(arrived, processors_.next_seconds()));
    if (!more) break;
    for (const uint64_t message : arrived) {
      const Exchange exchange = exchange_of(message);
      const uint32_t to = exchange.is_sum ? exchange.worker : plan_.partitions[exchange.partition].owner;
      GLN_RETURN_IF_ERROR(give(to, Processors::Work::kReceive, message));
    }
    done += arrived.size();
    arrived.clear();
    GLN_RETURN_IF_ERROR(processors_.advance(network_.now(), [this](auto work) { return carry_out(work); }));
    if (progress && turn % kTurnsPerProgress == 0) progress(static_cast<double>(done) / static_cast<double>(messages_));
  }
  const double seconds = std::max(network_.now(), processors_.end_seconds());
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
