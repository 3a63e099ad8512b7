#include "common/transport/rdma/stripe.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

namespace gleaner::transport::rdma {
namespace {

TEST(Stripe, WithoutLanesThereIsOneWay) {
  Stripe stripe;
  EXPECT_EQ(stripe.open_paths(), 1u);
  EXPECT_EQ(stripe.choose(100), 0u);
  stripe.open(0, 0);
  EXPECT_EQ(stripe.choose(100), 0u) << "a rate of 0, and no other";
}

TEST(Stripe, GoesWhereItIsThereFirst) {
  Stripe stripe;
  stripe.open(0, 100);
  stripe.open(2, 300);
  EXPECT_EQ(stripe.open_paths(), 2u);
  EXPECT_EQ(stripe.choose(60), 2u);
  stripe.started(2, 60);
  EXPECT_EQ(stripe.choose(60), 2u) << "120 / 300 is less than 60 / 100";
  stripe.started(2, 60);
  EXPECT_EQ(stripe.choose(60), 0u) << "as soon by either, so by the first";
  stripe.started(0, 60);
  EXPECT_EQ(stripe.choose(60), 2u);
  stripe.done(2, 60);
  EXPECT_EQ(stripe.choose(1), 2u);
}

TEST(Stripe, ARateOfNothingIsNotUsedWhereAnotherHasMore) {
  Stripe stripe;
  stripe.open(0, 0);
  stripe.open(1, 1);
  stripe.started(1, 1'000'000);
  EXPECT_EQ(stripe.choose(10), 1u);
}

// Bytes by each of two paths after a long time, with as many on the way as are let through, each path handing over its
// payloads in order and at its rate.
std::array<double, 2> run(std::array<uint64_t, 2> said, std::array<double, 2> real, double most) {
  Stripe stripe;
  for (size_t i = 0; i < 2; ++i) stripe.open(i, said[i]);
  std::mt19937 random(5);
  std::array<std::deque<uint64_t>, 2> waiting;
  std::array<double, 2> free_at{};  // when each has handed over all but what it is about to begin
  std::array<double, 2> sent{};
  double on_the_way = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bytes = 500 + random() % 1000;
    while (on_the_way + static_cast<double>(bytes) > most) {
      const auto finish = [&](size_t path) {
        return waiting[path].empty() ? 1e300 : free_at[path] + static_cast<double>(waiting[path].front()) / real[path];
      };
      const size_t next = finish(0) <= finish(1) ? 0 : 1;
      const uint64_t done = waiting[next].front();
      free_at[next] = finish(next);
      waiting[next].pop_front();
      stripe.done(next, done);
      sent[next] += static_cast<double>(done);
      on_the_way -= static_cast<double>(done);
    }
    const size_t path = stripe.choose(bytes);
    stripe.started(path, bytes);
    waiting[path].push_back(bytes);
    if (waiting[path].size() == 1) free_at[path] = std::max(free_at[path], std::min(free_at[0], free_at[1]));
    on_the_way += static_cast<double>(bytes);
  }
  return sent;
}

TEST(Stripe, SharesByBandwidth) {
  const auto sent = run({100, 300}, {100, 300}, 20'000);
  EXPECT_NEAR(sent[1] / sent[0], 3, 0.15);
}

TEST(Stripe, FollowsWhatPathsReallyHave) {
  const auto sent = run({100, 100}, {100, 300}, 20'000);
  EXPECT_NEAR(sent[1] / sent[0], 3, 0.3);
}

}  // namespace
}  // namespace gleaner::transport::rdma
