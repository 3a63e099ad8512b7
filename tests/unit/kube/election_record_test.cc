#include "common/kube/election_record.h"

#include <gtest/gtest.h>

#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

constexpr absl::Duration kLease = absl::Seconds(15);

Object lease(const std::string& holder, const std::string& version) {
  Object object = ElectionRecord::claimed({}, "ns", "leader", holder, kLease, absl::UnixEpoch());
  object["metadata"]["resourceVersion"] = version;
  return object;
}

TEST(ElectionRecord, IsClosedWhileItsHolderRenews) {
  ElectionRecord record;
  for (int i = 0; i < 10; ++i) {
    const absl::Duration now = absl::Seconds(10) * i;
    record.observe(lease("a", std::to_string(i)), now);
    EXPECT_FALSE(record.is_open_to("b", now));
    EXPECT_TRUE(record.is_open_to("a", now));
  }
}

TEST(ElectionRecord, OpensOnceNothingWasObservedForTheDuration) {
  ElectionRecord record;
  record.observe(lease("a", "1"), absl::Seconds(100));
  record.observe(lease("a", "1"), absl::Seconds(110));  // the same write is read again
  EXPECT_FALSE(record.is_open_to("b", absl::Seconds(114.9)));
  EXPECT_TRUE(record.is_open_to("b", absl::Seconds(115)));
}

TEST(ElectionRecord, ClockTimesInTheLeaseDoNotCount) {
  ElectionRecord record;
  Object object = lease("a", "1");
  object["spec"]["renewTime"] = "1990-01-01T00:00:00.000000Z";
  record.observe(object, absl::Seconds(100));
  EXPECT_FALSE(record.is_open_to("b", absl::Seconds(101)));
}

TEST(ElectionRecord, AReleasedLeaseIsOpenAtOnce) {
  ElectionRecord record;
  Object object = ElectionRecord::released(lease("a", "1"), absl::UnixEpoch());
  object["metadata"]["resourceVersion"] = "2";
  record.observe(object, absl::Seconds(1));
  EXPECT_TRUE(record.is_open_to("b", absl::Seconds(1)));
}

TEST(ElectionRecord, ClaimingCountsTransitionsAndKeepsTheRest) {
  Object object = lease("a", "7");
  object["metadata"]["labels"] = {{"x", "y"}};
  const Object same = ElectionRecord::claimed(object, "ns", "leader", "a", kLease, absl::FromUnixSeconds(60));
  EXPECT_EQ(same["spec"]["leaseTransitions"], 0);
  EXPECT_EQ(same["spec"]["acquireTime"], "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(same["spec"]["renewTime"], "1970-01-01T00:01:00.000000Z");
  const Object other = ElectionRecord::claimed(object, "ns", "leader", "b", kLease, absl::FromUnixSeconds(60));
  EXPECT_EQ(other["spec"]["leaseTransitions"], 1);
  EXPECT_EQ(other["spec"]["acquireTime"], "1970-01-01T00:01:00.000000Z");
  EXPECT_EQ(other["spec"]["leaseDurationSeconds"], 15);
  EXPECT_EQ(resource_version_of(other), "7") << "without the version two candidates could claim the lease";
  EXPECT_EQ(other["metadata"]["labels"]["x"], "y");
}

TEST(ElectionRecord, TermsGrow) {
  Object first = lease("a", "7");
  first["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  const Object same = ElectionRecord::claimed(first, "ns", "leader", "a", kLease, absl::UnixEpoch());
  EXPECT_EQ(ElectionRecord::term(same), ElectionRecord::term(first));
  const Object next = ElectionRecord::claimed(first, "ns", "leader", "b", kLease, absl::UnixEpoch());
  EXPECT_EQ(ElectionRecord::term(next), ElectionRecord::term(first) + 1);
  const Object again = ElectionRecord::claimed(ElectionRecord::released(next, absl::UnixEpoch()), "ns", "leader", "b",
                                               kLease, absl::UnixEpoch());
  EXPECT_GT(ElectionRecord::term(again), ElectionRecord::term(next));
  Object anew = lease("a", "9");
  anew["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z";
  EXPECT_GT(ElectionRecord::term(anew), ElectionRecord::term(again)) << "the Lease was deleted";
}

}  // namespace
}  // namespace gleaner::kube
