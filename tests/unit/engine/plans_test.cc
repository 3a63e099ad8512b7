// Tests of Plans: the plan in force, and the frames that it accepts.
#include "summation-service/engine/plans.h"

#include <gtest/gtest.h>

#include "tests/status_codes.h"
#include "tests/unit/engine/plans.h"

namespace gleaner::testing {
namespace {

// Member 2 of job 7. It owns partition 0 of tensor 0 since epoch 5; member 0 owns partition 1.
class Plans : public ::testing::Test {
 protected:
  Plans() {
    plans.prepare(at(5));
    plans.commit();
  }
  static std::shared_ptr<const plan::Plan> at(uint32_t epoch) {
    return build_plan({.epoch = epoch, .tensors = {{.owners = {2, 0}, .since = 4, .moved = 5}}});
  }
  static wire::Header frame(uint32_t epoch, uint32_t worker = 0) {
    return engine::make_header({.job = 7, .self = worker}, epoch, wire::FrameType::kPush, {});
  }
  engine::Plans plans{{.job = 7, .self = 2}};
};

TEST_F(Plans, CommitBringsPlanIntoForce) {
  const auto next = at(6);
  ASSERT_TRUE(plans.check_successor(*next).ok());
  plans.prepare(next);
  EXPECT_EQ(plans.epoch(), 5u);
  EXPECT_EQ(plans.prepared_epoch(), 6u);
  EXPECT_TRUE(plans.commits(6));
  EXPECT_FALSE(plans.commits(5));
  plans.commit();
  EXPECT_EQ(plans.in_force(), next);
  EXPECT_EQ(plans.prepared_epoch(), 0u);
  EXPECT_FALSE(plans.commits(6));
  EXPECT_EQ(plans.check_successor(*next).code(), kWrongTime) << "the epoch does not increase";
}

TEST_F(Plans, DiscardsOnlyThatEpoch) {
  plans.prepare(at(6));
  plans.discard(5);
  EXPECT_EQ(plans.prepared_epoch(), 6u);
  plans.discard(6);
  EXPECT_EQ(plans.prepared_epoch(), 0u);
  EXPECT_EQ(plans.epoch(), 5u);
}

TEST_F(Plans, AcceptsEpochsUpToPrepared) {
  EXPECT_TRUE(plans.check_frame(0, frame(3)).ok());
  EXPECT_EQ(plans.check_frame(0, frame(6)).code(), kWrongTime);
  plans.prepare(at(7));
  EXPECT_EQ(plans.check_frame(0, frame(6)).code(), kWrongTime) << "no known plan has this epoch";
  EXPECT_TRUE(plans.check_frame(0, frame(7)).ok());
  EXPECT_EQ(plans.check_frame(2, frame(5, 2)).code(), kInvalid) << "a summer";
  EXPECT_EQ(plans.check_frame(0, frame(5, 1)).code(), kInvalid) << "the frame claims to be from another worker";
  wire::Header other = frame(5);
  other.job = 8;
  EXPECT_EQ(plans.check_frame(0, other).code(), kInvalid);
  EXPECT_EQ(engine::Plans({.job = 7, .self = 2}).check_frame(0, frame(5)).code(), kWrongTime) << "no plan";
}

TEST_F(Plans, FencesFramesForEarlierOwner) {
  EXPECT_TRUE(*plans.is_fenced(0, 4, {}));
  EXPECT_FALSE(*plans.is_fenced(0, 5, {}));
  EXPECT_TRUE(*plans.is_fenced(0, 4, {.partition = 1})) << "the summer may have owned the partition then";
  EXPECT_EQ(plans.is_fenced(0, 5, {.partition = 1}).status().code(), kInvalid) << "another member owns the partition";
  EXPECT_EQ(plans.is_fenced(0, 5, {.partition = 2}).status().code(), kInvalid);
  EXPECT_EQ(plans.is_fenced(0, 5, {.tensor = 1}).status().code(), kInvalid);
}

}  // namespace
}  // namespace gleaner::testing
