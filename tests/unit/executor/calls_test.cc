// Calls of groups: every collective that moves bytes, over frames that are delivered in any order between pairs.
#include "comm-lib/executor/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/executor/worker_group.h"

namespace gleaner::executor {
namespace {

using collective::Collective;
using collective::Postcondition;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::WorkerGroup;

constexpr uint32_t kGroup = 5;

// A job whose workers `members` make calls as a group: member i has rank i.
class CallingGroup {
 public:
  CallingGroup(uint32_t workers, std::vector<uint32_t> members, uint64_t window_bytes = 1 << 20)
      : job({.workers = workers, .tensors = {}}, window_bytes), members_(std::move(members)), random_(workers) {
    for (const uint32_t member : members_) EXPECT_EQ(job[member].add_group(kGroup, members_), absl::OkStatus());
  }
  explicit CallingGroup(uint32_t workers) : CallingGroup(workers, all(workers)) {}

  static std::vector<uint32_t> all(uint32_t workers) {
    std::vector<uint32_t> members(workers);
    std::iota(members.begin(), members.end(), 0);
    return members;
  }
  uint32_t ranks() const { return static_cast<uint32_t>(members_.size()); }

  absl::Status call(uint32_t rank, Call call) {
    call.group = kGroup;
    return job.call(members_[rank], call);
  }
  // Delivers the first frame from any worker to any other, until there are none; ticks then.
  void deliver_all() {
    for (int quiet = 0; quiet < 3; ++quiet) {
      while (deliver_any()) quiet = 0;
      for (const uint32_t member : members_) job.tick(member);
    }
  }
  bool deliver_any() {
    std::vector<uint32_t> receivers;
    std::ranges::copy_if(members_, std::back_inserter(receivers), [&](uint32_t to) { return !job.inbox(to).empty(); });
    if (receivers.empty()) return false;
    const uint32_t to = receivers[random_() % receivers.size()];
    auto& inbox = job.inbox(to);
    const uint32_t from = inbox[random_() % inbox.size()].header.sender;
    const auto frame = std::ranges::find_if(inbox, [&](const auto& send) { return send.header.sender == from; });
    const exchange::Send taken = std::move(*frame);
    inbox.erase(frame);
    EXPECT_EQ(job.deliver(to, taken), absl::OkStatus());
    return true;
  }

  WorkerGroup job;

 private:
  std::vector<uint32_t> members_;
  std::mt19937 random_;
};

std::byte value(uint64_t call, uint32_t block, uint64_t at) {
  return static_cast<std::byte>((call * 89 + block * 31 + at * 7 + (at >> 8)) & 0xff);
}

bool is_slice(const exchange::Send& send) { return send.header.type == wire::FrameType::kSlice; }

// The memory of all ranks for one call, with `bytes` bytes in each block.
class Memory {
 public:
  Memory(uint64_t id, const Collective& collective, uint64_t bytes) : id_(id), collective_(collective), bytes_(bytes) {
    for (uint32_t rank = 0; rank < collective.ranks; ++rank) {
      inputs_.push_back(fill(rank, &Collective::begins_with));
      outputs_.emplace_back(fill(rank, &Collective::ends_with).size());
    }
  }
  Call call(uint32_t rank) {
    return {.id = id_,
            .collective = collective_.postcondition,
            .root = collective_.root,
            .input = inputs_[rank],
            .output = outputs_[rank]};
  }
  void expect_results() const {
    for (uint32_t rank = 0; rank < collective_.ranks; ++rank) {
      EXPECT_TRUE(outputs_[rank] == fill(rank, &Collective::ends_with))
          << collective::name_of(collective_.postcondition) << " of " << collective_.ranks << " ranks, root "
          << collective_.root << ", " << bytes_ << " bytes: rank " << rank;
    }
  }

 private:
  std::vector<std::byte> fill(uint32_t rank, bool (Collective::*has)(uint32_t, uint32_t) const) const {
    std::vector<std::byte> vector;
    for (uint32_t block = 0; block < collective_.blocks(); ++block) {
      if (!(collective_.*has)(rank, block)) continue;
      for (uint64_t at = 0; at < bytes_; ++at) vector.push_back(value(id_, block, at));
    }
    return vector;
  }

  const uint64_t id_;
  const Collective collective_;
  const uint64_t bytes_;
  std::vector<std::vector<std::byte>> inputs_, outputs_;
};

std::vector<Collective> collectives_of(uint32_t ranks) {
  std::vector<Collective> all;
  for (const Postcondition each : collective::postconditions()) {
    if (Collective{ranks, each}.adds()) continue;
    const uint32_t roots = collective::has_root(each) ? ranks : 1;
    for (uint32_t root = 0; root < roots; ++root) all.push_back({ranks, each, root});
  }
  return all;
}

// All ranks make all calls at once; early ones, before others have made theirs.
void expect_all_work(CallingGroup& group, const std::vector<uint64_t>& sizes) {
  std::vector<Memory> calls;
  for (const Collective& collective : collectives_of(group.ranks())) {
    for (const uint64_t bytes : sizes) calls.emplace_back(calls.size(), collective, bytes);
  }
  std::mt19937 random(group.ranks());
  std::vector<size_t> made(group.ranks());
  for (size_t left = calls.size() * group.ranks(); left > 0;) {
    const uint32_t rank = static_cast<uint32_t>(random() % group.ranks());
    if (made[rank] < calls.size()) {
      ASSERT_EQ(group.call(rank, calls[made[rank]++].call(rank)), absl::OkStatus());
      --left;
    }
    for (uint64_t i = random() % 4; i > 0; --i) group.deliver_any();
  }
  group.deliver_all();
  EXPECT_EQ(group.job.actions.refused, absl::OkStatus());
  EXPECT_EQ(group.job.take_done().size(), calls.size() * group.ranks());
  for (const Memory& call : calls) call.expect_results();
  EXPECT_TRUE(group.job.idle());
  EXPECT_EQ(group.job.pool.bytes_in_use(), 0u);
}

TEST(Calls, MoveBytesWhereTheCollectiveSays) {
  for (uint32_t ranks = 1; ranks <= 9; ++ranks) {
    CallingGroup group(ranks);
    expect_all_work(group, {0, 1, 1000});
  }
}

TEST(Calls, MoveManyPartsThroughSmallWindows) {
  for (const uint32_t ranks : {2u, 3u}) {
    CallingGroup group(ranks, CallingGroup::all(ranks), 100'000);
    expect_all_work(group, {600'001});
  }
}

TEST(Calls, TwoPartsAreInFlightBeyondTheWindow) {
  CallingGroup group(2, {0, 1}, 1);
  Memory memory(1, {2, Postcondition::kBroadcast, 0}, 4 << 19);
  ASSERT_EQ(group.call(0, memory.call(0)), absl::OkStatus());
  EXPECT_EQ(std::ranges::count_if(group.job.inbox(1), is_slice), 2);
  ASSERT_EQ(group.call(1, memory.call(1)), absl::OkStatus());
  group.deliver_all();
  memory.expect_results();
}

TEST(Calls, AGroupMayHaveSomeWorkersInAnyOrder) {
  CallingGroup group(6, {4, 1, 5});
  expect_all_work(group, {10, 100'000});
}

TEST(Calls, BlocksOfAnAllToAllMayDiffer) {
  constexpr uint32_t kRanks = 3;
  const uint64_t sizes[kRanks][kRanks] = {{5, 0, 700'000}, {0, 3, 1}, {9, 1'200'000, 0}};  // from, to
  CallingGroup group(kRanks);
  std::vector<std::vector<std::byte>> inputs(kRanks), outputs(kRanks), expected(kRanks);
  std::vector<Call> calls(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (uint32_t peer = 0; peer < kRanks; ++peer) {
      for (uint64_t at = 0; at < sizes[rank][peer]; ++at) inputs[rank].push_back(value(rank, peer, at));
      for (uint64_t at = 0; at < sizes[peer][rank]; ++at) expected[rank].push_back(value(peer, rank, at));
      calls[rank].sent.push_back(sizes[rank][peer]);
      calls[rank].received.push_back(sizes[peer][rank]);
    }
    outputs[rank].resize(expected[rank].size());
    calls[rank].collective = Postcondition::kAllToAll;
    calls[rank].input = inputs[rank];
    calls[rank].output = outputs[rank];
    ASSERT_EQ(group.call(rank, calls[rank]), absl::OkStatus());
  }
  group.deliver_all();
  EXPECT_EQ(group.job.take_done().size(), kRanks);
  EXPECT_TRUE(outputs == expected);
}

TEST(Calls, ARootWaitsForRanksThatHaveNotCalled) {
  CallingGroup group(2);
  std::vector<std::byte> data(4 << 20);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(group.call(0, {.collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
  }
  group.deliver_all();
  EXPECT_TRUE(group.job.take_done().empty());
  EXPECT_LT(group.job.pool.bytes_in_use(), 8u << 20) << "what a rank has not asked for is bounded";
  EXPECT_EQ(group.job[0].waiting_for(), std::vector<uint32_t>{1});
}

TEST(Calls, SlicesArriveOverANewConnection) {
  CallingGroup group(3);
  Memory memory(0, {3, Postcondition::kAllGather}, 700'000);
  for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_EQ(group.call(rank, memory.call(rank)), absl::OkStatus());
  for (int i = 0; i < 3; ++i) group.deliver_any();
  for (uint32_t worker = 0; worker < 3; ++worker) {
    group.job.inbox(worker).clear();
    for (uint32_t peer = 0; peer < 3; ++peer) group.job[worker].on_disconnected(peer);
  }
  for (uint32_t worker = 0; worker < 3; ++worker) {
    for (uint32_t peer = 0; peer < 3; ++peer) {
      if (peer != worker) group.job.connect(worker, peer);
    }
  }
  group.deliver_all();
  EXPECT_EQ(group.job.take_done().size(), 3u);
  memory.expect_results();
}

TEST(Calls, RanksThatCallDifferentlyAreNamed) {
  const std::vector<std::byte> data(1000), more(1001);
  std::vector<std::byte> result(3000);
  const Call gather{.collective = Postcondition::kAllGather, .input = data, .output = MutableBytes(result).first(2000)};
  const struct {
    Call other;
    const char* problem;
  } cases[] = {
      {{.collective = Postcondition::kBroadcast, .root = 1, .input = data}, "broadcast"},
      {{.collective = Postcondition::kAllGather, .input = more, .output = MutableBytes(result).first(2002)}, "1001"},
  };
  for (const auto& each : cases) {
    CallingGroup group(2);
    ASSERT_EQ(group.call(0, gather), absl::OkStatus());
    ASSERT_EQ(group.call(1, each.other), absl::OkStatus());
    group.deliver_all();
    EXPECT_THAT(std::string(group.job.actions.refused.message()),
                AllOf(HasSubstr("call 0 of group 5"), HasSubstr("worker "), HasSubstr(each.problem)));
  }
}

TEST(Calls, WrongArgumentsAreErrors) {
  CallingGroup group(2);
  std::vector<std::byte> memory(1000);
  const auto error_of = [&](const Call& call) { return std::string(group.call(0, call).message()); };
  EXPECT_THAT(error_of({.collective = Postcondition::kAllReduce, .input = memory, .output = memory}),
              HasSubstr("all-reduce"));
  EXPECT_THAT(error_of({.collective = Postcondition::kBroadcast, .root = 2, .input = memory}), HasSubstr("root"));
  EXPECT_THAT(error_of({.collective = Postcondition::kAllGather, .input = memory, .output = memory}),
              HasSubstr("output of a collective has 1000 bytes, expected 2000"));
  EXPECT_THAT(error_of({.collective = Postcondition::kAllToAll, .input = MutableBytes(memory).first(999)}),
              HasSubstr("evenly"));
  EXPECT_THAT(std::string(group.job[0].add_group(6, {0, 0}).message()), HasSubstr("has already"));
  EXPECT_THAT(std::string(group.job[0].add_group(6, {0, 2}).message()), HasSubstr("does not have"));
  EXPECT_THAT(std::string(group.job[0].add_group(6, {1}).message()), HasSubstr("no member"));
  EXPECT_THAT(std::string(group.job.call(0, {.group = 9}).message()), HasSubstr("no group 9"));
  EXPECT_THAT(error_of({.collective = Postcondition::kBroadcast, .root = 65'536, .input = memory}), HasSubstr("root"));
  EXPECT_THAT(error_of({.collective = Postcondition::kAllToAll,
                        .input = memory,
                        .output = memory,
                        .sent = {1000, UINT64_MAX},
                        .received = {1000, 0}}),
              HasSubstr("don't add up"));
  EXPECT_THAT(std::string(group.job[0].add_group(wire::kCallBit, {0, 1}).message()), HasSubstr("2^31"));
}

TEST(Calls, RanksChooseAnAlgorithmByTheWholeVector) {
  for (const Postcondition each : {Postcondition::kGather, Postcondition::kScatter}) {
    CallingGroup group(3);
    Memory memory(1, {3, each}, 40'000);
    for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_EQ(group.call(rank, memory.call(rank)), absl::OkStatus());
    group.deliver_all();
    EXPECT_EQ(group.job.actions.refused, absl::OkStatus());
    memory.expect_results();
  }
}

TEST(Calls, EarlySlicesOfAnotherGroupWait) {
  CallingGroup group(2);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_EQ(group.job[i].add_group(kGroup + 1, {0, 1}), absl::OkStatus());
  Memory one(1, {2, Postcondition::kAllGather}, 100), other(2, {2, Postcondition::kAllGather}, 100);
  const auto call = [&](uint32_t rank) {
    Call made = other.call(rank);
    made.group = kGroup + 1;
    return group.job.call(rank, made);
  };
  ASSERT_EQ(call(1), absl::OkStatus());
  group.deliver_all();
  for (uint32_t rank = 0; rank < 2; ++rank) ASSERT_EQ(group.call(rank, one.call(rank)), absl::OkStatus());
  ASSERT_EQ(call(0), absl::OkStatus());
  group.deliver_all();
  EXPECT_EQ(group.job.actions.refused, absl::OkStatus());
  one.expect_results();
  other.expect_results();
}

TEST(Calls, ACallWithoutBytesFindsRanksThatSendSome) {
  CallingGroup group(2);
  std::vector<std::byte> data(1000), result(2000);
  const Call call{.collective = Postcondition::kAllGather, .input = data, .output = result};
  ASSERT_EQ(group.call(1, call), absl::OkStatus());
  group.deliver_all();
  ASSERT_EQ(group.call(0, {.collective = Postcondition::kAllGather}), absl::OkStatus());
  EXPECT_THAT(std::string(group.job.actions.refused.message()), HasSubstr("worker 1 sent more bytes"));
}

TEST(Calls, AnotherKindIsFound) {
  CallingGroup group(2);
  std::vector<std::byte> data(10), result(20);
  Call call{.collective = Postcondition::kAllGather, .input = data, .output = result};
  for (call.kind = 1; call.kind < 3; ++call.kind) ASSERT_EQ(group.call(call.kind - 1, call), absl::OkStatus());
  group.deliver_all();
  EXPECT_THAT(std::string(group.job.actions.refused.message()), HasSubstr("hash of members, type and reduction"));
  call.kind = 2048;
  EXPECT_THAT(std::string(group.call(0, call).message()), HasSubstr("expected less than 2048"));
}

TEST(Calls, MembersInAnotherOrderAreFound) {
  WorkerGroup job({.workers = 2, .tensors = {}});
  std::vector<std::byte> data(10), result(20);
  const Call call{.group = 1, .collective = Postcondition::kAllGather, .input = data, .output = result};
  ASSERT_EQ(job[0].add_group(1, {0, 1}), absl::OkStatus());
  ASSERT_EQ(job[1].add_group(1, {1, 0}), absl::OkStatus());
  for (uint32_t i = 0; i < 2; ++i) ASSERT_EQ(job.call(i, call), absl::OkStatus());
  EXPECT_EQ(job.deliver_all(), absl::OkStatus());
  EXPECT_THAT(std::string(job.actions.refused.message()), HasSubstr("hash of members"));
}

TEST(Calls, ASliceThatNobodyExpectsIsAnError) {
  CallingGroup group(4);
  const std::vector<std::byte> data(1000);
  ASSERT_EQ(group.call(0, {.collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
  exchange::Send frame = group.job.inbox(1).front();
  frame.header.sender = 3;  // which has no messages with the root
  frame.header.payload_bytes = 0;
  frame.payload = {};
  ASSERT_EQ(group.job.deliver(0, frame), absl::OkStatus());
  EXPECT_THAT(std::string(group.job.actions.refused.message()), HasSubstr("worker 3 sent 0 bytes"));
}

// Neither worker has made the call with which the other has filled its limit.
TEST(Calls, TensorsAndOtherGroupsGoOnBesideACallThatWaits) {
  WorkerGroup job({.workers = 2, .tensors = {{.elements = 1000}}});
  for (uint32_t i = 0; i < 2; ++i) {
    for (const uint32_t number : {1, 2, 3}) ASSERT_EQ(job[i].add_group(number, {0, 1}), absl::OkStatus());
  }
  std::vector<std::byte> data(8 << 20), result(8 << 20);
  for (uint32_t i = 0; i < 2; ++i) {
    const Call waits{.id = i, .group = i + 1, .collective = Postcondition::kBroadcast, .root = i, .input = data};
    ASSERT_EQ(job.call(i, waits), absl::OkStatus());
  }
  for (uint32_t i = 0; i < 2; ++i) {
    job.fill(i, 0, 1);
    ASSERT_EQ(job.start(i), absl::OkStatus());
    Call call{.id = 3, .group = 3, .collective = Postcondition::kBroadcast};
    if (i == 0) call.input = data;
    if (i == 1) call.output = result;
    ASSERT_EQ(job.call(i, call), absl::OkStatus());
  }
  EXPECT_EQ(job.deliver_all(), absl::OkStatus());
  EXPECT_EQ(job.take_done().size(), 4u) << "the tensor and the call of group 3, on both workers";
}

TEST(Calls, NamesTheRanksForWhichACallWaits) {
  CallingGroup group(6, {4, 1, 5});
  std::vector<std::byte> data(30), result(30);
  const Call call{.id = 8, .collective = Postcondition::kAllToAll, .input = data, .output = result};
  ASSERT_EQ(group.call(0, call), absl::OkStatus());
  group.deliver_all();
  EXPECT_EQ(group.job[4].describe_call(8),
            "call 0 of group 5 (all-to-all) waits for rank 1 (worker 1), rank 2 (worker 5)");
  ASSERT_EQ(group.call(2, call), absl::OkStatus());
  group.deliver_all();
  EXPECT_EQ(group.job[4].describe_call(8), "call 0 of group 5 (all-to-all) waits for rank 1 (worker 1)");
  EXPECT_EQ(group.job[4].describe_call(9), "");
  EXPECT_EQ(group.job[1].describe_call(8), "");
  ASSERT_EQ(group.call(1, call), absl::OkStatus());
  group.deliver_all();
  EXPECT_EQ(group.job[4].describe_call(8), "");
}

TEST(Calls, NamesSilentRanksBeforeLateOnes) {
  CallingGroup group(3);
  std::vector<std::byte> data(100'000), result(100'000);
  const Call receive{.id = 7, .collective = Postcondition::kBroadcast, .output = result};
  ASSERT_EQ(group.call(0, {.collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
  ASSERT_EQ(group.call(1, receive), absl::OkStatus());
  ASSERT_EQ(group.job.deliver_next(1), absl::OkStatus());
  EXPECT_EQ(group.job[1].describe_call(7), "call 0 of group 5 (broadcast) waits for rank 2 (worker 2)");
  const size_t from_root = group.job.inbox(1).size();
  ASSERT_EQ(group.call(2, receive), absl::OkStatus());
  ASSERT_GT(group.job.inbox(1).size(), from_root);
  ASSERT_EQ(group.job.deliver(1, group.job.inbox(1).back()), absl::OkStatus());
  EXPECT_EQ(group.job[1].describe_call(7), "call 0 of group 5 (broadcast) waits for rank 0 (worker 0)");
}

TEST(Calls, NamesTheCallBeforeOneThatHasNotBegun) {
  CallingGroup group(3);
  std::vector<std::byte> data(1 << 20);
  ASSERT_EQ(group.call(0, {.id = 1, .collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
  ASSERT_EQ(group.call(0, {.id = 2, .collective = Postcondition::kScatter, .input = MutableBytes(data).first(300'000)}),
            absl::OkStatus());
  EXPECT_THAT(
      group.job[0].describe_call(2),
      HasSubstr("call 1 of group 5 (scatter) waits for its turn after call 0 of group 5 (broadcast), which waits "
                "for rank 1 (worker 1)"));
}

TEST(Calls, TellWhetherSomethingHasArrivedForTheNextOne) {
  CallingGroup group(2);
  std::vector<std::byte> data(1000), result(1000);
  EXPECT_FALSE(group.job[1].has_arrived(kGroup));
  ASSERT_EQ(group.call(0, {.collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
  ASSERT_EQ(group.job.deliver_next(1), absl::OkStatus());
  EXPECT_TRUE(group.job[1].has_arrived(kGroup));
  EXPECT_FALSE(group.job[1].has_arrived(kGroup + 1));
  ASSERT_EQ(group.call(1, {.collective = Postcondition::kBroadcast, .output = result}), absl::OkStatus());
  EXPECT_FALSE(group.job[1].has_arrived(kGroup));
}

// Rank 0 has ended all its calls, and rank 1 lacks slices of the last one when rank 0 removes the group.
TEST(Calls, AMemberRemovesAGroupWhileOthersAreBehind) {
  CallingGroup group(2);
  Memory memory(1, {2, Postcondition::kAllGather}, 1000);
  for (uint32_t rank = 0; rank < 2; ++rank) ASSERT_EQ(group.call(rank, memory.call(rank)), absl::OkStatus());
  EXPECT_THAT(std::string(group.job[0].remove_group(kGroup, group.job.actions).message()),
              HasSubstr("call 0 of group 5 is in flight"));
  while (group.job.actions.done.empty() && group.job.deliver_next(0).ok()) continue;
  ASSERT_EQ(group.job.take_done().size(), 1u);
  ASSERT_EQ(group.job[0].remove_group(kGroup, group.job.actions), absl::OkStatus());
  exchange::Send late;
  late.header = group.job.inbox(1).front().header;
  late.header.type = wire::FrameType::kAwait;
  late.header.sender = 1;
  late.header.payload_bytes = 0;
  late.header.confirmed = 0;
  ASSERT_EQ(group.job.deliver(0, late), absl::OkStatus());
  group.deliver_all();
  EXPECT_EQ(group.job.actions.refused, absl::OkStatus());
  memory.expect_results();
  EXPECT_THAT(std::string(group.job[0].remove_group(kGroup, group.job.actions).message()), HasSubstr("no group 5"));
  EXPECT_THAT(std::string(group.job[0].add_group(kGroup, {0, 1}).message()), HasSubstr("was removed"));
}

TEST(Calls, AFurtherCallOfARemovedGroupIsAnError) {
  for (const bool is_early : {false, true}) {
    CallingGroup group(2);
    const std::vector<std::byte> data(10);
    const auto remove = [&] { return group.job[1].remove_group(kGroup, group.job.actions); };
    if (!is_early) {
      ASSERT_EQ(remove(), absl::OkStatus());
    }
    ASSERT_EQ(group.call(0, {.collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
    group.deliver_all();
    if (is_early) {
      ASSERT_EQ(remove(), absl::OkStatus());
    }
    EXPECT_THAT(std::string(group.job.actions.refused.message()),
                HasSubstr("call 0 of group 5: worker 0 has made it, and worker 1 has removed the group"));
  }
}

TEST(Calls, RemovedGroupsLeaveTheOthersAsTheyAre) {
  CallingGroup group(3);
  for (uint32_t number = kGroup + 1; number < kGroup + 20; ++number) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(group.job[rank].add_group(number, {0, 1, 2}), absl::OkStatus());
    }
    Memory memory(number, {3, Postcondition::kAllGather}, 100);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      Call call = memory.call(rank);
      call.group = number;
      ASSERT_EQ(group.job.call(rank, call), absl::OkStatus());
    }
    group.deliver_all();
    memory.expect_results();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(group.job[rank].remove_group(number, group.job.actions), absl::OkStatus());
    }
  }
  group.job.take_done();
  expect_all_work(group, {1000});
}

TEST(Calls, BytesForGroupsThatAreNotMadeAreLimited) {
  constexpr uint64_t kFrames = EarlyFrames::kMostUnmadeBytes / wire::kMaxPayloadBytes - 1;  // which have headers, too
  BufferPool pool;
  const kernels::Kernels kernels = *kernels::Kernels::choose("");
  Machine machine(7, 0, &pool, &kernels, nullptr);
  Calls calls(0, &machine, &pool);
  exchange::Actions actions;
  std::vector<std::byte> memory(wire::kMaxPayloadBytes);
  const auto send = [&](uint32_t sender, uint32_t group, uint64_t call) {
    wire::Header header;
    header.type = wire::FrameType::kSlice;
    header.sender = sender;
    header.tensor = wire::kCallBit | group;
    header.step = call;
    return calls.on_frame(header, Buffer::borrow(memory), absl::ZeroDuration(), actions);
  };
  for (uint64_t i = 0; i < kFrames; ++i) ASSERT_EQ(send(1, i % 2, i), absl::OkStatus());
  for (uint64_t i = 0; i < kFrames; ++i) ASSERT_EQ(send(2, 0, i), absl::OkStatus()) << "each sender has its own limit";
  ASSERT_EQ(calls.add_group(0, {0, 1, 2}, 3), absl::OkStatus());
  for (uint64_t i = 0; i < 2 * kFrames; ++i) ASSERT_EQ(send(1, 0, i), absl::OkStatus()) << "the group is made";
  for (uint64_t i = 0; i < kFrames / 2; ++i) ASSERT_EQ(send(1, 3, i), absl::OkStatus());
  absl::Status refused = send(1, 3, kFrames);
  if (refused.ok()) refused = send(1, 3, kFrames + 1);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("of group 3: worker 0 has not made the group"), HasSubstr("what worker 1 sends")));
  machine.set_limit(EarlyFrames::kMostUnmadeBytes);
  EXPECT_EQ(send(1, 3, kFrames + 2), absl::OkStatus()) << "a group may have much in flight";
}

TEST(Calls, AFailureEndsThem) {
  CallingGroup group(2);
  const std::vector<std::byte> data(1000);
  ASSERT_EQ(group.call(0, {.id = 8, .collective = Postcondition::kBroadcast, .input = data}), absl::OkStatus());
  group.job[0].fail(absl::UnavailableError("worker 1 is lost"), group.job.actions);
  ASSERT_EQ(group.job.actions.done.size(), 1u);
  EXPECT_EQ(group.job.actions.done[0].status, absl::UnavailableError("worker 1 is lost"));
  EXPECT_EQ(group.job[0].waiting_for(), std::vector<uint32_t>());
}

}  // namespace
}  // namespace gleaner::executor
