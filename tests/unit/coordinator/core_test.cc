#include "coordinator/core/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/control/member_messages.h"
#include "common/plan/partitioner.h"
#include "common/plan/successor.h"
#include "coordinator/planning/advice.h"
#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A core with members and a clock. Members answer messages of the core only where a test makes them do so. The stream
// of seat s (fleet.h) is 100 + s.
class CoreRig {
 public:
  explicit CoreRig(const Options& options) : options_(options), core(options, now) {}

  StreamId stream(uint32_t seat) const { return 100 + seat; }
  Identity identity(uint32_t seat) const {
    const uint32_t ranks = options_.workers * options_.local_ranks;
    Identity identity;
    identity.role = seat < ranks ? Role::kWorker : Role::kSummer;
    identity.index = seat < ranks ? seat / options_.local_ranks : seat - ranks;
    identity.local_rank = seat < ranks ? seat % options_.local_ranks : 0;
    identity.local_size = options_.local_ranks;
    if (identity.local_rank == 0) identity.address = absl::StrCat("10.0.0.", seat, ":7000");
    return identity;
  }
  void join(uint32_t seat) { core.on_joined(stream(seat), identity(seat), std::nullopt, now, actions); }
  void join_all() {
    for (uint32_t seat = 0; seat < core.roster().size(); ++seat) join(seat);
  }
  void acknowledge_all(uint32_t epoch) {
    for (uint32_t seat = 0; seat < core.roster().size(); ++seat) {
      core.on_acknowledged(stream(seat), epoch, now, actions);
    }
  }
  void start() {
    join_all();
    acknowledge_all(1);
    ASSERT_EQ(core.plan().epoch, 1u);
    actions = {};
  }
  void declare(uint32_t rank, const std::vector<plan::Tensor>& tensors,
               const std::vector<plan::Operation>& operations = {}) {
    core.on_declared(stream(rank), tensors, operations, now, actions);
  }
  void leave(uint32_t seat, const absl::Status& status = absl::OkStatus()) {
    core.on_left(stream(seat), status, core.plan().epoch, now, actions);
  }
  // Lets time pass. All members send heartbeats, except those in the seats of `silent`.
  void pass(absl::Duration time, std::vector<uint32_t> silent = {}) {
    for (const absl::Duration end = now + time; now < end;) {
      now += absl::Milliseconds(100);
      for (uint32_t seat = 0; seat < core.roster().size(); ++seat) {
        if (std::find(silent.begin(), silent.end(), seat) == silent.end()) core.on_heartbeat(stream(seat), now);
      }
      core.on_tick(now, actions);
    }
  }
  // Reports that a rank waits for a tensor since now.
  void wait_for(uint32_t rank, const std::string& tensor, uint64_t step) {
    core.on_waiting(stream(rank), OldestPushPull{tensor, step, now}, now);
  }
  void report(uint32_t rank, uint64_t steps) { core.on_report(stream(rank), {steps, 0, 0}, now, actions); }
  template <typename T>
  std::vector<StreamId> told() const {
    std::vector<StreamId> streams;
    for (const Send& send : actions.sends) {
      if (std::holds_alternative<T>(send.message)) streams.push_back(send.stream);
    }
    return streams;
  }
  template <typename T>
  const T* last() const {
    for (auto send = actions.sends.rbegin(); send != actions.sends.rend(); ++send) {
      if (const T* message = std::get_if<T>(&send->message)) return message;
    }
    return nullptr;
  }
  std::string failure() const {
    return core.outcome().has_ended() ? std::string(core.outcome().status()->message()) : "no outcome";
  }

  const Options options_;
  absl::Duration now = absl::Seconds(1000);
  Core core;
  Actions actions;
};

plan::Tensor tensor(const std::string& name, uint64_t elements = 1000, int32_t priority = 0, uint32_t since = 0) {
  return {name, elements, DataType::kFloat32, priority, since};
}

TEST(Core, CommitsAfterTheLastAcknowledgementInAnyOrder) {
  for (const std::vector<uint32_t>& order : {std::vector<uint32_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}) {
    CoreRig rig(options(3, 1));
    rig.join_all();
    for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
      for (const uint32_t seat : order) {
        EXPECT_EQ(rig.core.plan().epoch, epoch - 1);
        rig.core.on_acknowledged(rig.stream(seat), epoch, rig.now, rig.actions);
      }
      EXPECT_EQ(rig.core.plan().epoch, epoch);
      for (uint32_t rank = 0; rank < 3; ++rank) rig.declare(rank, {tensor(absl::StrCat("after", epoch))});
    }
  }
}

TEST(Core, PreparesTheFirstPlanWhenAllMembersHaveJoinedAndCommitsWhenAllHaveIt) {
  CoreRig rig(options(2, 1, 2));
  for (uint32_t seat = 0; seat < 4; ++seat) rig.join(seat);
  EXPECT_EQ(rig.last<Prepare>(), nullptr);
  rig.join(4);
  EXPECT_THAT(rig.told<Prepare>(), ElementsAre(100, 101, 102, 103, 104));
  const plan::Plan& plan = *rig.last<Prepare>()->plan;
  EXPECT_EQ(plan::validate(plan), absl::OkStatus());
  EXPECT_EQ(plan.epoch, 1u);
  EXPECT_EQ(plan.local_ranks, 2u);
  ASSERT_EQ(plan.members.size(), 3u);
  EXPECT_EQ(plan.members[1].address, "10.0.0.2:7000") << "the address of local rank 0";
  EXPECT_EQ(plan.members[2].address, "10.0.0.4:7000");
  for (uint32_t seat : {4, 2, 1, 1, 3, 0}) {
    EXPECT_EQ(rig.last<Commit>(), nullptr) << "before seat " << seat;
    rig.core.on_acknowledged(rig.stream(seat), 1, rig.now, rig.actions);
  }
  EXPECT_THAT(rig.told<Commit>(), ElementsAre(100, 101, 102, 103, 104));
}

TEST(Core, WelcomesMembersByTheirPlanIndex) {
  CoreRig rig(options(2, 2, 2));
  std::vector<uint32_t> members;
  for (uint32_t seat = 0; seat < 6; ++seat) {
    rig.join(seat);
    members.push_back(rig.last<Welcome>()->member);
  }
  EXPECT_THAT(members, ElementsAre(0, 0, 1, 1, 2, 3));
  EXPECT_THAT(rig.actions.notes[1], HasSubstr("2 of 4 ranks, 0 of 2 summers"));
}

TEST(Core, GivesSummersWithoutAnIndexTheNextFreeIndex) {
  CoreRig rig(options(1, 3));
  Identity summer = rig.identity(2);  // summer 1
  rig.core.on_joined(1, summer, std::nullopt, rig.now, rig.actions);
  summer.index = std::nullopt;
  std::vector<uint32_t> members;
  for (StreamId id = 2; id <= 3; ++id) {
    rig.core.on_joined(id, summer, std::nullopt, rig.now, rig.actions);
    members.push_back(rig.last<Welcome>()->member);
  }
  EXPECT_THAT(members, ElementsAre(1, 3));
  rig.core.on_joined(4, summer, std::nullopt, rig.now, rig.actions);
  EXPECT_TRUE(absl::IsAlreadyExists(rig.last<Rejected>()->why));
}

TEST(Core, BandwidthsComeFromTheListsThenTheOptionThenTheMembers) {
  const auto bandwidths = [](const Options& given) {
    CoreRig rig(given);
    for (uint32_t seat = 0; seat < 3; ++seat) {
      Identity identity = rig.identity(seat);
      identity.bits_per_second = seat == 1 ? 0 : 5e9;
      rig.core.on_joined(rig.stream(seat), identity, std::nullopt, rig.now, rig.actions);
    }
    std::vector<double> result;
    for (const plan::Member& member : rig.last<Prepare>()->plan->members) result.push_back(member.bits_per_second);
    return result;
  };
  Options given = options(2, 1);
  EXPECT_THAT(bandwidths(given), ElementsAre(5e9, 5e9, 5e9)) << "a link of unknown speed counts as fast as the others";
  given.bits_per_second = 2e9;
  EXPECT_THAT(bandwidths(given), ElementsAre(2e9, 2e9, 2e9));
  given.worker_bits_per_second = {3e9, 4e9};
  EXPECT_THAT(bandwidths(given), ElementsAre(3e9, 4e9, 2e9));
}

TEST(Core, PlansTensorsThatAllRanksDeclaredInTheOrderOfRankZero) {
  CoreRig rig(options(2, 1));
  rig.start();
  rig.declare(1, {tensor("a", 10, 9), tensor("b", 20, 9)});
  rig.declare(0, {tensor("b", 20, 1), tensor("x", 5, 2), tensor("a", 10, 3)});
  ASSERT_THAT(rig.told<Prepare>(), ElementsAre(100, 101, 102));
  const std::shared_ptr<const plan::Plan> second = rig.last<Prepare>()->plan;
  EXPECT_EQ(second->epoch, 2u);
  EXPECT_THAT(second->tensors, ElementsAre(tensor("b", 20, 1, 2), tensor("a", 10, 3, 2)));

  // Tensors that are agreed on while a plan is proposed wait for the next plan.
  rig.declare(1, {tensor("x", 5)});
  EXPECT_THAT(rig.told<Prepare>(), ElementsAre(100, 101, 102));
  rig.acknowledge_all(2);
  EXPECT_THAT(rig.told<Commit>(), ElementsAre(100, 101, 102));
  const std::shared_ptr<const plan::Plan> third = rig.last<Prepare>()->plan;
  EXPECT_EQ(third->epoch, 3u);
  EXPECT_EQ(plan::check_successor(*third, *second), absl::OkStatus());
  EXPECT_EQ(third->tensors.back(), tensor("x", 5, 2, 3));
}

TEST(Core, AcceptsDeclarationsBeforeTheStart) {
  CoreRig rig(options(1, 1));
  rig.join(0);
  rig.declare(0, {tensor("a")});
  rig.join(1);
  rig.acknowledge_all(1);
  EXPECT_EQ(rig.last<Prepare>()->plan->epoch, 2u);
}

TEST(Core, PartitionsHaveTheRequestedSize) {
  Options given = options(2, 0);
  given.partition_bytes = 4096;
  CoreRig rig(given);
  rig.start();
  for (uint32_t rank = 0; rank < 2; ++rank) rig.declare(rank, {tensor("a", 1 << 20)});
  uint32_t largest = 0;
  for (const plan::Partition& part : rig.last<Prepare>()->plan->partitions) largest = std::max(largest, part.bytes);
  EXPECT_EQ(largest, 4096u);
}

TEST(Core, ARepeatedDeclarationIsHarmless) {
  CoreRig rig(options(2, 0));
  rig.start();
  rig.declare(0, {tensor("a")});
  rig.declare(0, {tensor("a")});
  EXPECT_EQ(rig.last<Prepare>(), nullptr) << "a repeated declaration of rank 0 does not count for rank 1";
  rig.declare(1, {tensor("a")});
  rig.acknowledge_all(2);
  rig.declare(1, {tensor("a")});
  EXPECT_EQ(rig.told<Prepare>().size(), 2u);
  EXPECT_FALSE(rig.core.outcome().has_ended());
}

plan::Tensor tensor_of(const std::string& name, std::vector<uint32_t> group) {
  plan::Tensor made = tensor(name);
  made.group = std::move(group);
  return made;
}

TEST(Core, GroupAgreesWithoutOtherWorkers) {
  CoreRig rig(options(3, 1));
  rig.start();
  rig.declare(2, {tensor_of("w", {1, 2})});
  EXPECT_EQ(rig.last<Prepare>(), nullptr);
  rig.declare(1, {tensor_of("w", {1, 2})});
  rig.acknowledge_all(2);
  ASSERT_EQ(rig.core.plan().tensors.size(), 1u);
  EXPECT_THAT(rig.core.plan().tensors[0].group, ElementsAre(1, 2));
  EXPECT_EQ(plan::validate(rig.core.plan()), absl::OkStatus());
}

TEST(Core, MissingMemberOfGroupIsNamed) {
  CoreRig rig(options(4, 1));
  rig.start();
  rig.declare(3, {tensor_of("w", {1, 3})});
  rig.pass(absl::Seconds(6));
  ASSERT_FALSE(rig.actions.warnings.empty());
  EXPECT_THAT(rig.actions.warnings[0], HasSubstr("tensor 'w' was declared by worker 3 but not by worker 1 for"));
}

TEST(Core, GroupsThatDifferAreAnError) {
  CoreRig rig(options(3, 0));
  rig.start();
  rig.declare(1, {tensor_of("w", {0, 1})});
  rig.declare(0, {tensor_of("w", {})});
  EXPECT_THAT(rig.failure(), AllOf(HasSubstr("worker 1 declared 1000 elements of fp32, of workers 0, 1"),
                                   HasSubstr("worker 0 declared 1000 elements of fp32;")));
}

TEST(Core, StrangerToGroupIsAnError) {
  for (const std::vector<uint32_t>& group : {std::vector<uint32_t>{0, 1}, {2, 3}}) {
    CoreRig rig(options(3, 0));
    rig.start();
    rig.declare(2, {tensor_of("w", group)});
    EXPECT_THAT(rig.failure(), HasSubstr("expected workers of the job, itself among them"));
  }
}

// Worker 2 has not begun the sum of workers 0 and 1, and never will.
TEST(Core, GroupWaitsForNoOtherWorker) {
  CoreRig rig(options(3, 0));
  rig.start();
  for (const uint32_t rank : {0, 1}) rig.declare(rank, {tensor_of("w", {0, 1})});
  rig.acknowledge_all(2);
  rig.actions = {};
  for (const uint32_t rank : {0, 1}) rig.wait_for(rank, "w", 0);
  rig.pass(absl::Seconds(5));
  EXPECT_THAT(rig.told<Inquire>(), ElementsAre(100, 101));
  for (const uint32_t rank : {0, 1}) rig.core.on_begun(rig.stream(rank), "w", 1, rig.now);
  rig.leave(2);
  rig.pass(absl::Seconds(20));
  EXPECT_THAT(rig.actions.warnings, Not(Contains(HasSubstr("worker 2"))));
  EXPECT_EQ(rig.failure(), "no outcome");
}

TEST(Core, DeclarationsThatDifferNameTensorRanksAndShapes) {
  CoreRig rig(options(1, 1, 2));
  rig.start();
  rig.declare(1, {tensor("a"), tensor("w", 7)});
  rig.declare(0, {{"w", 7, DataType::kFloat16, 0}});
  EXPECT_TRUE(absl::IsInvalidArgument(*rig.core.outcome().status()));
  EXPECT_THAT(rig.failure(), AllOf(HasSubstr("'w'"), HasSubstr("worker 0 (local rank 1) declared 7 elements of fp32"),
                                   HasSubstr("worker 0 (local rank 0) declared 7 elements of fp16")));
  EXPECT_THAT(rig.told<Failed>(), ElementsAre(100, 101, 102));
}

TEST(Core, ATensorThatOneRankSumsAndAnotherAccumulatesIsAnError) {
  CoreRig rig(options(2, 0));
  rig.start();
  rig.declare(1, {tensor("w", 7)});
  rig.declare(0, {{"w", 7, DataType::kFloat32, 0, 0, true, 2}});
  EXPECT_THAT(rig.failure(), HasSubstr("worker 0 declared 7 elements of fp32, accumulated with a staleness of 2"));
}

TEST(Core, OperationsThatDifferNameTensorRanksAndOperations) {
  CoreRig rig(options(3, 1));
  rig.start();
  rig.declare(2, {tensor("w"), tensor("v")}, {{"v", ReduceOp::kSum}, {"w", ReduceOp::kAverage}});
  rig.declare(0, {tensor("v"), tensor("w")}, {{"v", ReduceOp::kSum}});
  EXPECT_EQ(rig.failure(), "no outcome");
  rig.declare(1, {tensor("w")}, {{"w", ReduceOp::kSum}});
  EXPECT_TRUE(absl::IsInvalidArgument(*rig.core.outcome().status()));
  EXPECT_EQ(rig.failure(),
            "tensor 'w': worker 2 asks for its average, worker 1 for its sum; every rank must ask for the same "
            "operation");
  EXPECT_THAT(rig.told<Failed>(), ElementsAre(100, 101, 102, 103));
}

// Local rank 0 tells local rank 1 directly, too, and its message may be the later one.
TEST(Core, LocalRanksThatDifferGetTheirOwnError) {
  CoreRig rig(options(2, 1, 2));
  rig.start();
  const absl::Status why = absl::InvalidArgumentError("tensor 'w': local ranks ask for other operations");
  rig.core.on_fault(rig.stream(0), control::Fault::kItself, 0, why, rig.now, rig.actions);
  std::vector<absl::Status> told;
  for (const Send& send : rig.actions.sends) {
    if (const auto* failed = std::get_if<Failed>(&send.message)) told.push_back(failed->status);
  }
  const absl::Status others = *rig.core.outcome().status();
  EXPECT_TRUE(absl::IsInvalidArgument(others)) << others;
  EXPECT_THAT(others.message(), HasSubstr("worker 0 (local rank 0) at 10.0.0.0:7000 can't go on: tensor 'w'"));
  EXPECT_THAT(told, ElementsAre(why, why, others, others, others));
}

TEST(Core, AnOperationMayArriveAfterItsTensorIsPlanned) {
  CoreRig rig(options(2, 0));
  rig.start();
  for (uint32_t rank = 0; rank < 2; ++rank) rig.declare(rank, {tensor("w")});
  rig.acknowledge_all(2);
  rig.declare(0, {}, {{"w", ReduceOp::kSum}});
  EXPECT_EQ(rig.failure(), "no outcome");
  rig.declare(1, {}, {{"w", ReduceOp::kAverage}});
  EXPECT_THAT(rig.failure(), HasSubstr("worker 0 asks for its sum, worker 1 for its average"));
}

TEST(Core, ARankThatDeclaresATensorTwiceDifferentlyIsAnError) {
  CoreRig rig(options(2, 0));
  rig.start();
  rig.declare(1, {tensor("w", 7)});
  rig.declare(1, {tensor("w", 8)});
  EXPECT_THAT(rig.failure(), AllOf(HasSubstr("'w'"), HasSubstr("worker 1 declared it twice"), HasSubstr("7"),
                                   HasSubstr("8"), Not(HasSubstr("worker 0"))));
  EXPECT_EQ(rig.core.outcome().culprit(), 1u);

  CoreRig planned(options(2, 0));
  planned.start();
  for (uint32_t rank = 0; rank < 2; ++rank) planned.declare(rank, {tensor("w", 7)});
  planned.declare(0, {tensor("w", 8)});
  EXPECT_THAT(planned.failure(), HasSubstr("worker 0 declared it twice"));
}

TEST(Core, MissingMembersAreNamedRepeatedly) {
  CoreRig rig(options(2, 1));
  rig.join(1);
  rig.pass(absl::Seconds(4));
  EXPECT_THAT(rig.actions.warnings, IsEmpty());
  rig.pass(absl::Seconds(2));
  ASSERT_EQ(rig.actions.warnings.size(), 1u);
  EXPECT_EQ(rig.actions.warnings[0], "waiting for worker 0, summer 0 to join: 5s of at most 1m");
  rig.join(0);
  rig.pass(absl::Seconds(15));
  ASSERT_EQ(rig.actions.warnings.size(), 2u);
  EXPECT_EQ(rig.actions.warnings[1], "waiting for summer 0 to join: 20s of at most 1m");
}

TEST(Core, ATensorThatSomeRanksNeverDeclareIsNamedWithTheRanks) {
  Options given = options(4, 0);
  given.declare_timeouts.waiting = absl::Seconds(20);
  CoreRig rig(given);
  rig.start();
  rig.declare(2, {tensor("agreed"), tensor("w")});
  rig.pass(absl::Seconds(1));
  for (uint32_t rank : {0, 1, 3}) rig.declare(rank, {tensor("agreed")});
  rig.acknowledge_all(2);
  rig.declare(0, {tensor("w")});
  rig.pass(absl::Seconds(15));
  EXPECT_EQ(rig.failure(), "no outcome");
  ASSERT_EQ(rig.actions.warnings.size(), 3u) << "the warning is repeated";
  EXPECT_THAT(rig.actions.warnings[0], HasSubstr("worker 1, worker 3 for 5s"));
  rig.wait_for(1, "odd", 0);
  rig.pass(absl::Seconds(30));
  EXPECT_EQ(rig.failure(), "no outcome") << "worker 3 may still declare the tensor";
  rig.wait_for(3, "odd", 0);
  rig.pass(absl::Seconds(19));
  EXPECT_EQ(rig.failure(), "no outcome");
  rig.pass(absl::Seconds(2));
  EXPECT_THAT(rig.failure(),
              AllOf(HasSubstr("tensor 'w' was declared by worker 2 but not by worker 1, worker 3"),
                    HasSubstr("within 20s; worker 1 waits for tensor 'odd', which worker 0 has not begun")));
}

TEST(Core, ABusyRankThatDeclaresNothingFailsAfterItsLimit) {
  for (const char* name : {"ddp.0.4", "optimizer.0.gradient.weight", "optimizer.0.roll", "broadcast/x", "loss"}) {
    Options given = options(2, 0);
    given.declare_timeouts.busy = absl::Seconds(8);
    CoreRig rig(given);
    rig.start();
    rig.declare(1, {{name, 4, DataType::kFloat32}});
    rig.wait_for(1, name, 0);
    rig.pass(absl::Seconds(7));
    EXPECT_EQ(rig.failure(), "no outcome");
    rig.pass(absl::Seconds(2));
    EXPECT_THAT(rig.failure(), AllOf(HasSubstr(absl::StrCat("tensor '", name,
                                                            "' was declared by worker 1 but not by "
                                                            "worker 0 within 8s; every rank must "))));
    EXPECT_EQ(rig.core.outcome().culprit(), 0u);
  }
}

TEST(Core, FirstPushPullsInDifferentOrdersAreADeadlock) {
  Options given = options(2, 0);
  given.declare_timeouts.waiting = absl::Seconds(4);
  CoreRig rig(given);
  rig.start();
  rig.declare(0, {tensor("a")});
  rig.declare(1, {tensor("b")});
  rig.wait_for(0, "a", 0);
  rig.wait_for(1, "b", 0);
  rig.pass(absl::Seconds(3));
  EXPECT_EQ(rig.failure(), "no outcome");
  rig.pass(absl::Seconds(2));
  EXPECT_THAT(rig.failure(), AllOf(HasSubstr("'a' was declared by worker 0 but not by worker 1 within 4s; worker 1 "
                                             "waits for tensor 'b', which worker 0 has not begun"),
                                   HasSubstr("in the same order"), Not(HasSubstr("declare the same tensors"))));
}

TEST(Core, AShortDeclareTimeoutIsKept) {
  Options given = options(3, 0);
  given.declare_timeouts.waiting = absl::Seconds(4);
  CoreRig rig(given);
  rig.start();
  const std::vector<std::string> names = {"a", "b", "c"};
  for (uint32_t rank = 0; rank < 3; ++rank) rig.declare(rank, {tensor("a"), tensor("b"), tensor("c")});
  rig.acknowledge_all(2);
  for (uint32_t rank = 0; rank < 3; ++rank) rig.wait_for(rank, names[rank], 0);
  for (int turn = 0; turn < 100 && rig.failure() == "no outcome"; ++turn) {
    rig.pass(absl::Milliseconds(100));
    const Inquire* const asked = rig.last<Inquire>();
    if (asked == nullptr) continue;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      rig.core.on_begun(rig.stream(rank), asked->tensor, asked->tensor == names[rank] ? 1 : 0, rig.now);
    }
    EXPECT_LT(turn, 50) << "the circle is found within 5 s";
  }
  EXPECT_THAT(rig.failure(), HasSubstr("ranks wait for each other"));
  EXPECT_LE(rig.actions.warnings.size(), 1u) << "questions may follow each other fast, but warnings do not";
}

TEST(Core, RollCallsOfDifferentSizesTellTheNumbersOfParameters) {
  CoreRig rig(options(2, 0));
  rig.start();
  const auto gradient = [](const std::string& name, int priority) {
    return plan::Tensor{absl::StrCat("optimizer.0.gradient.", name), 8, DataType::kFloat32, priority};
  };
  const auto roll = [](uint64_t parameters) {
    return plan::Tensor{"optimizer.0.roll", parameters + kRollElementsOfRank * 2, DataType::kInt32, -1};
  };
  rig.declare(0, {gradient("1.weight", 1), gradient("0.weight", 0), roll(2)});
  rig.declare(
      1, {gradient("3.weight", 3), gradient("2.weight", 2), gradient("1.weight", 1), gradient("0.weight", 0), roll(4)});
  EXPECT_THAT(rig.failure(),
              HasSubstr("'optimizer.0' has 2 parameters on worker 0 and 4 on worker 1; only worker 1 has tensor "
                        "'optimizer.0.gradient.2.weight'; every rank must wrap the optimizers of the same models"));
}

TEST(Core, NamesThatResembleRollCallsAreOtherTensors) {
  for (const auto& [name, type] : {std::pair("camera.roll", DataType::kFloat32),
                                   {"camera.roll", DataType::kInt32},
                                   {"optimizer.x.roll", DataType::kInt32},
                                   {"optimizer.0.roll", DataType::kInt32}}) {
    CoreRig rig(options(2, 0));
    rig.start();
    rig.declare(0, {{name, 10, type}});
    rig.declare(1, {{name, 10, DataType::kFloat64}});
    EXPECT_THAT(rig.failure(),
                AllOf(HasSubstr(absl::StrCat("tensor '", name, "': worker 0 declared 10 elements of ")),
                      HasSubstr("worker 1 declared 10 elements of fp64; every rank must declare it alike")));
  }
}

TEST(Core, NamesThatResembleBucketsGetNoAdviceAboutModels) {
  for (const char* name : {"layer.10", "ddp.10", "ddp.x.10", "layer.0.10"}) {
    CoreRig rig(options(2, 0));
    rig.start();
    rig.declare(1, {{name, 10, DataType::kFloat32}});
    rig.wait_for(1, name, 0);
    rig.pass(absl::Minutes(1));
    ASSERT_FALSE(rig.actions.warnings.empty());
    EXPECT_THAT(rig.actions.warnings.back(), HasSubstr("every rank must begin the same push_pulls"));
  }
}

TEST(Core, ABusyRankMayHaveAShorterLimitThanARankThatWaits) {
  Options given = options(2, 0);
  given.declare_timeouts.busy = absl::Seconds(1);
  CoreRig rig(given);
  rig.start();
  rig.declare(1, {tensor("w")});
  rig.pass(absl::Seconds(2));
  EXPECT_THAT(rig.failure(), HasSubstr("tensor 'w' was declared by worker 1 but not by worker 0 within 1s"));
  given.declare_timeouts.busy = absl::Milliseconds(1);
  EXPECT_THAT(validate(given).message(), HasSubstr("at least 100 ms"));
}

TEST(Core, RanksWaitForARankThatLoadsACheckpoint) {
  CoreRig rig(options(2, 0));
  rig.start();
  rig.declare(1, {tensor("w")});
  rig.wait_for(1, "w", 0);
  rig.pass(absl::Minutes(30));
  EXPECT_EQ(rig.failure(), "no outcome");
  EXPECT_THAT(rig.actions.warnings.back(),
              AllOf(HasSubstr("tensor 'w' was declared by worker 1 but not by worker 0 for"),
                    HasSubstr("every rank must begin the same push_pulls")));
  rig.declare(0, {tensor("w")});
  rig.acknowledge_all(2);
  EXPECT_EQ(rig.core.plan().tensors.size(), 1u);
}

// A job of two workers with two ranks each, which has the tensor 'w'.
class StallTest : public testing::Test {
 protected:
  StallTest() : rig_(options(2, 1, 2)) {
    rig_.start();
    for (uint32_t rank = 0; rank < 4; ++rank) rig_.declare(rank, {tensor("w")});
    rig_.acknowledge_all(2);
    rig_.actions = {};
  }
  void answer(uint32_t rank, uint64_t begun) { rig_.core.on_begun(rig_.stream(rank), "w", begun, rig_.now); }
  CoreRig rig_;
};

TEST_F(StallTest, ALateRankIsNamedRepeatedly) {
  for (uint32_t rank : {0, 1, 3}) rig_.wait_for(rank, "w", 5);
  rig_.pass(absl::Seconds(4));
  EXPECT_THAT(rig_.told<Inquire>(), IsEmpty());
  rig_.pass(absl::Seconds(1));
  EXPECT_THAT(rig_.told<Inquire>(), ElementsAre(100, 101, 102, 103)) << "ranks are asked, and summers are not";
  EXPECT_EQ(rig_.last<Inquire>()->tensor, "w");
  for (uint32_t rank : {0, 1, 3}) answer(rank, 6);
  answer(2, 5);
  rig_.pass(absl::Milliseconds(100));
  ASSERT_EQ(rig_.actions.warnings.size(), 1u);
  EXPECT_EQ(rig_.actions.warnings[0],
            "tensor 'w', step 6: worker 0 (local rank 0), worker 0 (local rank 1), worker 1 (local rank 1) wait since "
            "5s for worker 1 (local rank 0), which has begun 5 steps of it");
  EXPECT_THAT(rig_.core.steps().deadlocks().stall(),
              HasSubstr("worker 1 (local rank 1) wait for worker 1 (local rank 0), which has"));
  rig_.pass(absl::Seconds(20));
  EXPECT_GE(rig_.actions.warnings.size(), 4u);
  for (uint32_t rank : {0, 1}) rig_.wait_for(rank, "w", 6);
  EXPECT_THAT(rig_.core.steps().deadlocks().stall(), HasSubstr("step 6")) << "one rank still waits for step 6";
  rig_.wait_for(3, "w", 6);
  EXPECT_EQ(rig_.core.steps().deadlocks().stall(), "");
  EXPECT_EQ(rig_.failure(), "no outcome");
}

TEST_F(StallTest, NothingIsReportedOnceTheSumIsComplete) {
  for (uint32_t rank : {0, 1, 3}) rig_.wait_for(rank, "w", 5);
  rig_.pass(absl::Seconds(5));
  for (uint32_t rank : {0, 1, 3}) rig_.core.on_waiting(rig_.stream(rank), std::nullopt, rig_.now);
  rig_.pass(absl::Seconds(20));
  EXPECT_THAT(rig_.actions.warnings, IsEmpty());
}

TEST_F(StallTest, ARankThatDoesNotAnswerIsNamed) {
  rig_.wait_for(0, "w", 0);
  rig_.pass(absl::Seconds(5));
  for (uint32_t rank : {0, 1, 3}) answer(rank, 1);
  rig_.pass(absl::Seconds(1));
  EXPECT_THAT(rig_.actions.warnings, ElementsAre(AllOf(HasSubstr("worker 0 (local rank 0) waits"),
                                                       HasSubstr("for worker 1 (local rank 0), which does not say"))));
}

TEST_F(StallTest, NoRankIsBlamedIfAllHaveBegun) {
  rig_.wait_for(0, "w", 0);
  rig_.pass(absl::Seconds(5));
  for (uint32_t rank = 0; rank < 4; ++rank) answer(rank, 1);
  rig_.pass(absl::Milliseconds(100));
  EXPECT_THAT(rig_.actions.warnings, ElementsAre(HasSubstr("the network or a summer is slow")));
}

// Ranks 0 and 2 are local rank 0 of workers 0 and 1.
TEST_F(StallTest, AwaitedMembersAreNamedIfAllHaveBegun) {
  for (const uint32_t rank : {0, 2}) {
    rig_.core.on_waiting(rig_.stream(rank), OldestPushPull{"w", 0, rig_.now, {rank == 0 ? 1u : 0u, 99}}, rig_.now);
  }
  rig_.pass(absl::Seconds(5));
  for (uint32_t rank = 0; rank < 4; ++rank) answer(rank, 1);
  rig_.pass(absl::Milliseconds(100));
  EXPECT_THAT(rig_.actions.warnings,
              ElementsAre(HasSubstr("the network, or a member, is slow; worker 0 (local rank 0) awaits frames of "
                                    "worker 1 (local rank 0), worker 1 (local rank 0) of worker 0 (local rank 0)")));
}

TEST_F(StallTest, ARankThatFinishedEarlyIsNamedToTheOtherRanksWithItsSteps) {
  rig_.report(1, 5);
  rig_.report(3, 5);
  rig_.leave(1);
  rig_.pass(absl::Seconds(30));
  EXPECT_EQ(rig_.failure(), "no outcome") << "no member waits";
  rig_.wait_for(3, "w", 5);
  rig_.pass(absl::Seconds(4));
  EXPECT_EQ(rig_.failure(), "no outcome") << "the last results may be in flight";
  rig_.pass(absl::Seconds(2));
  EXPECT_EQ(
      rig_.failure(),
      "worker 0 (local rank 1) finished after 5 steps; worker 1 (local rank 1) is at step 6, and waits for tensor "
      "'w': every rank must take part in every step");
  EXPECT_EQ(rig_.core.outcome().culprit(), 1u);
  EXPECT_THAT(rig_.told<Failed>(), ElementsAre(100, 102, 103, 104));
}

TEST(Core, RanksInADeadlockAreNamed) {
  for (const bool is_circle : {true, false}) {
    Options given = options(3, 0);
    given.declare_timeouts.waiting = absl::Seconds(30);
    CoreRig rig(given);
    rig.start();
    for (uint32_t rank = 0; rank < 3; ++rank) rig.declare(rank, {tensor("a"), tensor("b")});
    rig.acknowledge_all(2);
    const std::vector<std::string> waits = {"b", "a", "a"};
    // Each rank has begun only the tensor for which it waits. If there is no deadlock, rank 0 waits for nothing.
    for (uint32_t rank = is_circle ? 0 : 1; rank < 3; ++rank) rig.wait_for(rank, waits[rank], 4);
    for (int second = 0; second < 29; ++second) {
      rig.pass(absl::Seconds(1));
      const Inquire* const asked = rig.last<Inquire>();
      if (asked == nullptr) continue;
      for (uint32_t rank = 0; rank < 3; ++rank) {
        rig.core.on_begun(rig.stream(rank), asked->tensor, asked->tensor == waits[rank] ? 5 : 4, rig.now);
      }
    }
    EXPECT_EQ(rig.failure(), "no outcome");
    rig.pass(absl::Seconds(3));
    if (!is_circle) {
      rig.pass(absl::Minutes(10));
      EXPECT_EQ(rig.failure(), "no outcome") << "rank 0 may still begin the tensor that the others wait for";
      continue;
    }
    EXPECT_THAT(rig.failure(),
                AllOf(HasSubstr("ranks wait for each other: worker 0 waits since 30s for tensor 'b', step 5, which "
                                "worker 1 has not begun; worker 1 waits since 30s for tensor 'a', step 5, which worker "
                                "0 has not begun"),
                      HasSubstr("must wait for tensors in the same order")));
  }
}

TEST_F(StallTest, AnUnreachableRankThatLeavesHasFinishedEarly) {
  rig_.report(0, 5);
  rig_.report(2, 5);
  for (uint32_t rank : {0, 1}) rig_.leave(rank);
  rig_.core.on_fault(rig_.stream(2), 0, 1, absl::UnavailableError("worker/0 is out of reach"), rig_.now, rig_.actions);
  EXPECT_THAT(rig_.failure(), HasSubstr("worker 0 (local rank 0) finished after 5 steps; worker 1 (local rank 0) is "
                                        "at step 6"));
}

TEST_F(StallTest, ALossReportsTheStepsOfAllRanks) {
  rig_.report(0, 6);
  rig_.report(2, 5);
  rig_.core.on_disconnected(rig_.stream(2), absl::UnavailableError("its connection broke"), rig_.actions);
  EXPECT_THAT(rig_.failure(), HasSubstr("worker 1 (local rank 0) at 10.0.0.2:7000 is lost: its connection broke; its "
                                        "last report was of 5 steps, the others' of up to 6"));
}

TEST_F(StallTest, RanksWithoutAReportAreNotSaidToBeBehindALostRank) {
  rig_.report(2, 3);
  rig_.core.on_disconnected(rig_.stream(2), absl::UnavailableError("its connection broke"), rig_.actions);
  EXPECT_THAT(rig_.failure(), testing::EndsWith("its connection broke; its last report was of 3 steps"));
}

TEST(Core, ATensorThatALeavingRankNeverDeclaredFailsAtOnce) {
  for (const bool leaves_first : {true, false}) {
    CoreRig rig(options(2, 0));
    rig.start();
    if (leaves_first) rig.leave(1);
    rig.declare(0, {tensor("w")});
    if (!leaves_first) rig.leave(1);
    EXPECT_THAT(rig.failure(), AllOf(HasSubstr("'w'"), HasSubstr("worker 1 has left the job")));
  }
}

TEST(Core, MembersMissingAtTheStartAreNamed) {
  CoreRig rig(options(2, 2, 2));
  for (uint32_t seat : {0, 1, 2, 5}) rig.join(seat);
  rig.pass(absl::Seconds(59));
  EXPECT_EQ(rig.failure(), "no outcome");
  rig.pass(absl::Seconds(2));
  EXPECT_THAT(rig.failure(), HasSubstr("worker 1 (local rank 1), summer 0 did not join within 1m"));
  EXPECT_THAT(rig.told<Failed>(), ElementsAre(100, 101, 102, 105));
}

TEST(Core, ManyMissingMembersAreCounted) {
  CoreRig rig(options(100, 0));
  rig.pass(absl::Seconds(61));
  EXPECT_THAT(rig.failure(), AllOf(HasSubstr("worker 9 and 90 more"), Not(HasSubstr("worker 10"))));
}

TEST(Core, AMemberThatDoesNotAcknowledgeIsNamed) {
  CoreRig rig(options(2, 1));
  rig.join_all();
  for (uint32_t seat : {0, 2}) rig.core.on_acknowledged(rig.stream(seat), 1, rig.now, rig.actions);
  rig.pass(absl::Seconds(11));
  EXPECT_THAT(rig.failure(), HasSubstr("worker 1 did not acknowledge the plan of epoch 1 within 10s"));
}

TEST(Core, RefusalFailsTheJobWithItsReason) {
  CoreRig rig(options(2, 1));
  rig.join_all();
  rig.core.on_refused(rig.stream(1), 1, absl::ResourceExhaustedError("no memory"), rig.now, rig.actions);
  EXPECT_THAT(rig.failure(), AllOf(HasSubstr("worker 1 at 10.0.0.1:7000"), HasSubstr("no memory")));
  EXPECT_TRUE(absl::IsResourceExhausted(*rig.core.outcome().status()));
}

TEST(Core, LostMembersAreNamed) {
  CoreRig silent(options(2, 1));
  silent.start();
  silent.pass(absl::Seconds(11), {1});
  EXPECT_THAT(silent.failure(), HasSubstr("worker 1 at 10.0.0.1:7000 is lost: it has sent no message for 10s"));
  EXPECT_EQ(silent.core.outcome().culprit(), 1u);

  CoreRig broken(options(2, 1));
  broken.start();
  broken.core.on_disconnected(101, absl::UnavailableError("its connection broke"), broken.actions);
  EXPECT_THAT(broken.failure(), HasSubstr("worker 1 at 10.0.0.1:7000 is lost: its connection broke"));

  CoreRig accused(options(2, 1));
  accused.start();
  accused.core.on_fault(100, 1, 1, absl::UnavailableError("refused"), accused.now, accused.actions);
  EXPECT_THAT(accused.failure(),
              AllOf(HasSubstr("worker 1 at 10.0.0.1:7000 is lost"), HasSubstr("worker 0 reports: refused")));
  EXPECT_EQ(accused.core.outcome().culprit(), 1u);
}

TEST(Core, APauseOfTheCoordinatorIsNotSilenceOfMembers) {
  CoreRig rig(options(1, 1));
  rig.start();
  rig.now += absl::Hours(1);  // the coordinator was stopped, or its machine suspended
  rig.core.on_tick(rig.now, rig.actions);
  rig.pass(absl::Seconds(3));
  EXPECT_EQ(rig.failure(), "no outcome");
}

TEST(Core, HeartbeatsGoOutOnceASecond) {
  CoreRig rig(options(1, 0));
  rig.start();
  rig.pass(absl::Seconds(10));
  EXPECT_EQ(rig.told<Heartbeat>().size(), 10u);
}

TEST(Core, EndsWellWhenAllWorkersLeft) {
  CoreRig rig(options(2, 1));
  rig.start();
  rig.leave(0);
  EXPECT_EQ(rig.told<Goodbye>(), std::vector<StreamId>{100});
  rig.core.on_disconnected(100, absl::UnavailableError("gone"), rig.actions);
  EXPECT_EQ(rig.failure(), "no outcome");
  rig.leave(1);
  EXPECT_EQ(*rig.core.outcome().status(), absl::OkStatus());
  EXPECT_EQ(rig.told<Finished>(), std::vector<StreamId>{102});
  EXPECT_TRUE(rig.core.summary().succeeded);
}

TEST(Core, LeavingWithAnErrorOrTooEarlyFailsTheJob) {
  CoreRig error(options(2, 1));
  error.start();
  error.leave(1, absl::AbortedError("loss is NaN"));
  EXPECT_THAT(error.failure(), AllOf(HasSubstr("worker 1"), HasSubstr("loss is NaN")));
  EXPECT_THAT(error.told<Failed>(), ElementsAre(100, 102));
  EXPECT_EQ(error.core.outcome().culprit(), 1u);

  CoreRig early(options(1, 1));
  early.join(0);
  early.leave(0);
  EXPECT_THAT(early.failure(), HasSubstr("left before the job had begun"));
}

TEST(Core, NothingChangesAfterTheEnd) {
  CoreRig rig(options(1, 1));
  rig.start();
  rig.core.stop(absl::CancelledError("enough"), rig.actions);
  rig.actions = {};
  rig.core.stop(absl::CancelledError("more than enough"), rig.actions);
  rig.leave(0, absl::AbortedError("other"));
  rig.core.on_disconnected(101, absl::UnavailableError("x"), rig.actions);
  rig.declare(0, {tensor("a")});
  rig.pass(absl::Seconds(100), {0, 1});
  EXPECT_EQ(rig.failure(), "enough");
  EXPECT_TRUE(rig.actions.sends.empty());
  rig.core.on_joined(7, rig.identity(0), std::nullopt, rig.now, rig.actions);
  EXPECT_THAT(std::string(rig.last<Rejected>()->why.message()), HasSubstr("has failed: enough"));
}

TEST(Core, WrongIdentitiesAreRejectedWithoutEffectOnMembers) {
  const auto rejection = [](auto change) {
    CoreRig rig(options(2, 1));
    Identity identity = rig.identity(1);
    change(identity);
    rig.core.on_joined(1, identity, std::nullopt, rig.now, rig.actions);
    EXPECT_EQ(rig.core.admission().rejected(), 1u);
    EXPECT_FALSE(rig.core.outcome().has_ended());
    const Rejected* rejected = rig.last<Rejected>();
    return rejected == nullptr ? std::string("let in") : std::string(rejected->why.message());
  };
  EXPECT_THAT(rejection([](Identity& who) { who.index = 2; }), HasSubstr("worker 2 is not in this job"));
  EXPECT_THAT(rejection([](Identity& who) { who.index = std::nullopt; }), HasSubstr("without an index"));
  EXPECT_THAT(rejection([](Identity& who) { who.local_size = 2; }), HasSubstr("GLEANER_LOCAL_SIZE"));
  EXPECT_THAT(rejection([](Identity& who) { who.local_rank = 1; }), HasSubstr("GLEANER_LOCAL_RANK"));
  EXPECT_THAT(rejection([](Identity& who) { who.address = "nowhere"; }), HasSubstr("'nowhere' is not an address"));
  EXPECT_THAT(rejection([](Identity& who) { who.address = "h:0"; }), HasSubstr("port 0"));
  EXPECT_THAT(rejection([](Identity& who) { who.endpoints.assign(9, "tcp://h:1"); }), HasSubstr("9 endpoints"));
  EXPECT_THAT(rejection([](Identity& who) { who.bits_per_second = -1; }), HasSubstr("-1 bit/s"));
  EXPECT_THAT(rejection([](Identity& who) { who.bits_per_second = NAN; }), HasSubstr("nan bit/s"));
  EXPECT_THAT(rejection([](Identity& who) {
                who.role = Role::kSummer;
                who.index = 1;
              }),
              HasSubstr("summer 1 is not in this job"));
}

TEST(Core, TheSummaryShowsTheGainFromSummers) {
  Options given = options(2, 2);
  given.bits_per_second = 8e9;
  CoreRig rig(given);
  rig.start();
  const uint32_t epoch = rig.core.plan().epoch;
  rig.core.on_report(100, {11, 12 << 20, 1.5, {{epoch, 10, 10 << 20, 0, 1.0}}}, rig.now, rig.actions);
  rig.core.on_report(101, {11, 12 << 20, 2.5, {{epoch, 10, 10 << 20, 0, 2.0}}}, rig.now, rig.actions);
  const Summary summary = rig.core.summary();
  EXPECT_EQ(summary.whole.steps, 11u);
  EXPECT_EQ(summary.whole.bytes_per_step, 1 << 20);
  EXPECT_DOUBLE_EQ(summary.whole.step_communication_seconds, 0.1);
  EXPECT_DOUBLE_EQ(summary.whole.step_wait_seconds, 0.1) << "worker 0 is late";
  EXPECT_DOUBLE_EQ(summary.whole.goodput_bytes_per_second, (1 << 20) / 0.1);
  const plan::Fleet with{{8e9, 8e9}, {8e9, 8e9}}, without{{8e9, 8e9}, {}};
  EXPECT_DOUBLE_EQ(summary.whole.bound_seconds, plan::bound_seconds(with, 1 << 20));
  EXPECT_DOUBLE_EQ(summary.whole.bound_seconds_without_summers, plan::bound_seconds(without, 1 << 20));
  EXPECT_DOUBLE_EQ(summary.whole.efficiency, summary.whole.bound_seconds / 0.1);
  EXPECT_EQ(summary.whole.basis, Basis::kBandwidth);
  EXPECT_DOUBLE_EQ(summary.window.efficiency, summary.whole.efficiency);
  ASSERT_EQ(summary.epochs.size(), 1u);
  EXPECT_EQ(summary.epochs[0].summers, 2u);
}

TEST(Core, ThereIsNoBoundIfALinksSpeedIsUnknown) {
  Options given = options(2, 1);
  given.worker_bits_per_second = {1e9, 0};  // 0: the bandwidth is unknown
  CoreRig rig(given);
  rig.start();
  EXPECT_FALSE(rig.core.plan().members[0].bandwidth_assumed);
  EXPECT_TRUE(rig.core.plan().members[1].bandwidth_assumed);
  EXPECT_TRUE(rig.core.plan().members[2].bandwidth_assumed);
  EXPECT_EQ(rig.core.plan().members[1].bits_per_second, 1e9) << "an unknown bandwidth counts as that of the others";
  EXPECT_EQ(rig.core.plan().members[2].bits_per_second, 1e9);
  const uint32_t epoch = rig.core.plan().epoch;
  rig.core.on_report(100, {10, 10 << 20, 1.0, {{epoch, 10, 10 << 20, 0, 1.0}}}, rig.now, rig.actions);
  const Summary summary = rig.core.summary();
  EXPECT_FALSE(summary.bandwidths_known);
  EXPECT_EQ(summary.whole.basis, Basis::kUnknownBandwidth);
  EXPECT_EQ(summary.whole.efficiency, 0);
  EXPECT_EQ(summary.whole.bound_seconds, 0);
  EXPECT_EQ(summary.plan_bound.seconds, 0);
  EXPECT_DOUBLE_EQ(summary.whole.goodput_bytes_per_second, 10 << 20);
  EXPECT_THAT(to_table(summary), HasSubstr("unknown: say how fast the links are, by --bandwidth"));
}

TEST(CoordinatorOptions, AreChecked) {
  const auto check = [](auto change) {
    Options given = options(2, 1);
    change(given);
    return std::string(validate(given).message());
  };
  EXPECT_EQ(check([](Options&) {}), "");
  EXPECT_THAT(check([](Options& o) { o.workers = 0; }), HasSubstr("at least one worker"));
  EXPECT_THAT(check([](Options& o) { o.summers = plan::kMaxMembers; }), HasSubstr("at most 65536"));
  EXPECT_THAT(check([](Options& o) { o.local_ranks = 0; }), HasSubstr("local ranks"));
  EXPECT_THAT(check([](Options& o) { o.local_ranks = plan::kMaxRanks; }), HasSubstr("local ranks"));
  EXPECT_THAT(check([](Options& o) { o.worker_bits_per_second = {1e9}; }), HasSubstr("each of 2 workers; got 1"));
  EXPECT_THAT(check([](Options& o) { o.summer_bits_per_second = {0.5}; }), HasSubstr("bandwidth of 0.5"));
  EXPECT_THAT(check([](Options& o) { o.bits_per_second = -1; }), HasSubstr("bandwidth of -1"));
  EXPECT_THAT(check([](Options& o) { o.partition_bytes = 5 << 20; }), HasSubstr("partitions of 5242880"));
  EXPECT_THAT(check([](Options& o) { o.deadline = absl::ZeroDuration(); }), HasSubstr("100 ms"));
}

}  // namespace
}  // namespace gleaner::coordinator
