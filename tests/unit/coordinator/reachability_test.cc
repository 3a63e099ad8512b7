#include "coordinator/core/reachability.h"

#include <gmock/gmock.h>

#include "coordinator/core/core.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Identity member(Role role, uint32_t index, const std::string& address, const std::string& network) {
  Identity identity;
  identity.role = role;
  identity.index = index;
  identity.address = address;
  identity.network = network;
  return identity;
}

Identity worker(uint32_t index, const std::string& address, const std::string& network) {
  return member(Role::kWorker, index, address, network);
}

TEST(Reachability, AddressesThatLeadToTheOwnHost) {
  const Identity here = worker(0, "10.0.0.1:7000", "A");
  for (const char* address : {"127.0.0.1:1", "127.0.1.1:1", "localhost:1", "[::1]:1", "0.0.0.0:1", "[::]:1"}) {
    EXPECT_TRUE(is_out_of_reach(here, worker(1, address, "B"))) << address;
    EXPECT_FALSE(is_out_of_reach(here, worker(1, address, "A"))) << address;
    EXPECT_FALSE(is_out_of_reach(here, worker(1, address, ""))) << address;
  }
  EXPECT_FALSE(is_out_of_reach(here, worker(1, "10.0.0.2:7000", "B")));
  EXPECT_FALSE(is_out_of_reach(worker(0, "127.0.0.1:1", "A"), worker(1, "10.0.0.2:7000", "B")));
}

TEST(Reachability, MembersThatShareADirectoryReachEachOther) {
  Identity one = worker(0, "127.0.0.1:1", "A"), other = worker(1, "127.0.0.1:2", "B");
  one.endpoints = {"shm://boot.1.2/dev/shm/a"};
  other.endpoints = {"tcp://127.0.0.1:2", "shm://boot.1.2/run/b"};
  EXPECT_FALSE(is_out_of_reach(one, other));
  other.endpoints = {"shm://boot.1.3/run/b"};
  EXPECT_TRUE(is_out_of_reach(one, other));
}

// A core and the messages that it sends to one stream.
class ReachabilityOfAJob : public testing::Test {
 protected:
  void join(StreamId stream, const Identity& identity) { core_.on_joined(stream, identity, {}, {}, actions_); }
  std::vector<std::string> rejections(StreamId stream) const {
    std::vector<std::string> texts;
    for (const Send& send : actions_.sends) {
      const auto* const rejected = std::get_if<Rejected>(&send.message);
      if (send.stream == stream && rejected != nullptr) texts.emplace_back(rejected->why.message());
    }
    return texts;
  }

  Core core_{job_of(2, 1), {}};
  Actions actions_;
};

TEST_F(ReachabilityOfAJob, ANewcomerWithALoopbackAddressIsRejected) {
  join(1, worker(0, "10.0.0.1:7000", "A"));
  join(2, worker(1, "127.0.0.1:7000", "B"));
  EXPECT_THAT(rejections(2), ElementsAre(AllOf(HasSubstr("worker 0 and worker 1 are on different hosts"),
                                               HasSubstr("127.0.0.1:7000"), HasSubstr("GLEANER_ADDRESS"))));
  EXPECT_THAT(rejections(1), ElementsAre());
}

TEST_F(ReachabilityOfAJob, AnEarlierMemberWithALoopbackAddressIsRejected) {
  join(1, worker(0, "127.0.0.1:7000", "A"));
  join(2, worker(1, "10.0.0.2:7000", "B"));
  EXPECT_THAT(rejections(1), ElementsAre(HasSubstr("worker 0 says that it is reached at 127.0.0.1:7000")));
  EXPECT_THAT(rejections(2), ElementsAre());
  join(3, worker(0, "10.0.0.1:7000", "A"));
  EXPECT_THAT(rejections(3), ElementsAre()) << "its place is free for the worker with another address";
}

TEST_F(ReachabilityOfAJob, ASummerThatAdvertisesALoopbackNameIsRejected) {
  join(1, worker(0, "10.0.0.1:7000", "A"));
  join(2, worker(1, "10.0.0.2:7000", "B"));
  join(3, member(Role::kSummer, 0, "localhost:7000", "C"));
  EXPECT_THAT(rejections(3), ElementsAre(AllOf(HasSubstr("summer 0"), HasSubstr("--advertise"))));
}

TEST(Reachability, AHostsFileIsNamed) {
  Options options = job_of(2, 1);
  options.launcher.has_hosts_file = true;
  for (const Identity& other : {worker(1, "127.0.1.1:7000", "B"), member(Role::kSummer, 0, "localhost:7000", "B")}) {
    Core core(options, {});
    Actions actions;
    core.on_joined(1, worker(0, "10.0.0.1:7000", "A"), {}, {}, actions);
    core.on_joined(2, other, {}, {}, actions);
    const auto* const rejected = std::get_if<Rejected>(&actions.sends.back().message);
    ASSERT_NE(rejected, nullptr);
    EXPECT_THAT(std::string(rejected->why.message()),
                AllOf(HasSubstr(other.role == Role::kSummer ? "\"address\" of summer 0 in the file of --hosts"
                                                            : "\"address\" of worker 1 in the file of --hosts"),
                      Not(HasSubstr("GLEANER_ADDRESS")), Not(HasSubstr("--advertise"))));
  }
}

TEST_F(ReachabilityOfAJob, AJobOnOneHostUsesLoopbackAddresses) {
  join(1, worker(0, "127.0.0.1:7000", "A"));
  join(2, worker(1, "127.0.0.1:7001", "A"));
  join(3, member(Role::kSummer, 0, "10.0.0.3:7000", "B"));
  EXPECT_EQ(core_.admission().rejected(), 0u);
  EXPECT_NE(core_.planning().agreement().proposed_epoch(), 0u);
}

}  // namespace
}  // namespace gleaner::coordinator
