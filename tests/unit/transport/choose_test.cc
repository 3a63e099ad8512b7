#include "common/transport/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Endpoint> endpoints(const std::vector<std::string>& texts) {
  std::vector<Endpoint> parsed = parse_endpoints(texts);
  EXPECT_EQ(parsed.size(), texts.size());
  return parsed;
}

std::vector<std::string> order(const Choice& choice) { return to_texts(choice.order); }

TEST(Preferences, AutoIsAllTransportsFromBestToWorst) {
  for (const char* text : {"", "auto"}) {
    const Preferences preferences = parse_preferences(text).value();
    EXPECT_THAT(preferences.kinds, ElementsAre(Kind::kShm, Kind::kRdma, Kind::kTcp));
    EXPECT_FALSE(preferences.forced());
    EXPECT_FALSE(preferences.named);
  }
}

TEST(Preferences, AListWithoutTcpIsForced) {
  EXPECT_FALSE(parse_preferences("tcp")->forced());
  EXPECT_FALSE(parse_preferences("rdma, tcp")->forced());
  EXPECT_TRUE(parse_preferences("rdma")->forced());
  EXPECT_TRUE(parse_preferences("shm,rdma!")->forced());
  EXPECT_THAT(parse_preferences("shm,rdma!")->kinds, ElementsAre(Kind::kShm, Kind::kRdma));
  EXPECT_TRUE(parse_preferences("rdma,tcp")->named);
}

TEST(Preferences, WrongPreferencesAreRefusedWithAReason) {
  const auto why = [](const char* text) { return std::string(parse_preferences(text).status().message()); };
  EXPECT_THAT(why("fast"), HasSubstr("'fast' is not a transport"));
  EXPECT_THAT(why("rdma!,tcp"), HasSubstr("nothing can follow 'rdma!'"));
  EXPECT_THAT(why("tcp,tcp"), HasSubstr("tcp is listed twice"));
  EXPECT_THAT(why("tcp,"), HasSubstr("write auto, or names from best to worst"));
}

TEST(Choose, TheBestCommonTransportGoesFirst) {
  const auto mine = endpoints({"shm://a/s/1", "rdma://10.0.0.1:1", "tcp://10.0.0.1:1"});
  EXPECT_THAT(order(choose(mine, endpoints({"tcp://10.0.0.2:1", "rdma://10.0.0.2:1", "shm://a/s/2"}))),
              ElementsAre("shm://a/s/2", "rdma://10.0.0.2:1", "tcp://10.0.0.2:1"));
  EXPECT_THAT(order(choose(mine, endpoints({"tcp://10.0.0.2:1"}))), ElementsAre("tcp://10.0.0.2:1"));
}

TEST(Choose, TheConnectingSideUsesItsOwnOrder) {
  const auto tcp_first = endpoints({"tcp://10.0.0.1:1", "shm://a/s/1"});
  const auto shm_first = endpoints({"shm://a/s/2", "tcp://10.0.0.2:1"});
  EXPECT_THAT(order(choose(tcp_first, shm_first)), ElementsAre("tcp://10.0.0.2:1", "shm://a/s/2"));
  EXPECT_THAT(order(choose(shm_first, tcp_first)), ElementsAre("shm://a/s/1", "tcp://10.0.0.1:1"));
}

TEST(Choose, SharedMemoryOfAnotherMachineIsExcluded) {
  const Choice choice =
      choose(endpoints({"shm://a/s/1", "tcp://10.0.0.1:1"}), endpoints({"shm://b/s/1", "tcp://10.0.0.2:1"}));
  EXPECT_THAT(order(choice), ElementsAre("tcp://10.0.0.2:1"));
  EXPECT_EQ(choice.why_not(), "shm: the two members do not see the same directory");
}

TEST(Choose, NoCommonTransportIsAnErrorWithTheReason) {
  const Choice choice = choose(endpoints({"rdma://10.0.0.1:1"}), endpoints({"tcp://10.0.0.2:1"}));
  EXPECT_THAT(choice.order, IsEmpty());
  EXPECT_EQ(choice.why_not(), "rdma: the peer does not offer it; tcp: this member does not use it");
}

}  // namespace
}  // namespace gleaner::transport
