// Tests of Takeover and AccumulationTakeover: the steps at which workers may be, and the worker that the new owner
// fetches from.
#include <gtest/gtest.h>

#include "summation-service/engine/accumulation_takeover.h"
#include "summation-service/engine/takeover.h"

namespace gleaner::testing {
namespace {

using engine::AccumulationTakeover;
using engine::Takeover;

TEST(Takeover, EndsWithTheLastWorker) {
  Takeover takeover(2, 2);
  EXPECT_TRUE(takeover.hear(0, 5, 0)) << "the first worker is ahead";
  EXPECT_TRUE(takeover.has_heard(0));
  EXPECT_FALSE(takeover.has_heard(1));
  EXPECT_FALSE(takeover.complete());
  EXPECT_FALSE(takeover.hear(1, 5, 5));
  EXPECT_TRUE(takeover.complete());
  EXPECT_EQ(takeover.behind(), 0u);
}

TEST(Takeover, FetchesFromFirstWorkerAhead) {
  constexpr uint32_t kWorkers = 100;  // more than a word of bits
  Takeover takeover(kWorkers, kWorkers);
  for (uint32_t worker = 0; worker < 70; ++worker) takeover.hear(worker, 5, worker == 0 ? 0 : 5);
  EXPECT_TRUE(takeover.hear(70, 6, 5));
  for (uint32_t worker = 71; worker < kWorkers; ++worker) EXPECT_FALSE(takeover.hear(worker, 6, 6));
  ASSERT_TRUE(takeover.complete());
  EXPECT_EQ(takeover.behind(), 70u);
  EXPECT_EQ(takeover.source(), 70u);
  EXPECT_FALSE(takeover.ahead().contains(69));
  EXPECT_TRUE(takeover.ahead().contains(99));
  EXPECT_EQ(takeover.asked(), Takeover::kNone);
  takeover.ask(70);
  EXPECT_EQ(takeover.asked(), 70u);
}

TEST(Takeover, WorkersWithinOneStep) {
  Takeover takeover(3, 3);
  EXPECT_TRUE(takeover.fits(17, 0)) << "the first worker may be at any step";
  takeover.hear(0, 5, 0);
  EXPECT_TRUE(takeover.fits(4, 5));
  EXPECT_TRUE(takeover.fits(6, 5));
  EXPECT_FALSE(takeover.fits(3, 5));
  EXPECT_FALSE(takeover.fits(7, 5));
  takeover.hear(1, 4, 5);
  EXPECT_FALSE(takeover.fits(6, 5)) << "worker 1 is at step 4";
  EXPECT_TRUE(takeover.fits(5, 5));
}

TEST(AccumulationTakeover, FetchesTheHighestVersion) {
  AccumulationTakeover takeover(3);
  EXPECT_EQ(takeover.source(), AccumulationTakeover::kNone);
  EXPECT_FALSE(takeover.hear(1, 4));
  EXPECT_FALSE(takeover.hear(0, 7));
  EXPECT_TRUE(takeover.has_heard(0));
  EXPECT_FALSE(takeover.has_heard(2));
  EXPECT_TRUE(takeover.hear(2, 7));
  EXPECT_EQ(takeover.source(), 0u) << "the first worker that has the version";
  EXPECT_EQ(takeover.version(), 7u);
  EXPECT_FALSE(takeover.is_fetching());
  takeover.set_fetching();
  EXPECT_TRUE(takeover.is_fetching());
}

TEST(AccumulationTakeover, KeepsWaitingContributions) {
  BufferPool pool;
  AccumulationTakeover takeover(2);
  EXPECT_TRUE(takeover.waiting(1).values.empty());
  takeover.keep(1, pool.take(8), 3);
  EXPECT_EQ(takeover.waiting(1).values.size(), 8u);
  EXPECT_EQ(takeover.waiting(1).step, 3u);
  EXPECT_TRUE(takeover.waiting(0).values.empty());
}

}  // namespace
}  // namespace gleaner::testing
