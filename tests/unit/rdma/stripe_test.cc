#include "common/transport/rdma/stripe.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

namespace gleaner::transport::rdma {
namespace {

TEST(Stripe, WithoutLanesThereIsOneWay) {
  Stripe stripe;
  EXPECT_EQ(stripe.paths(), 1u);
  EXPECT_EQ(stripe.choose(100), 0u);
}

TEST(Stripe, GoesWhereItIsThereFirst) {
  Stripe stripe;
  stripe.open(1, 100);
  stripe.open(3, 300);
  EXPECT_EQ(stripe.paths(), 2u);
  EXPECT_EQ(stripe.choose(60), 3u);
  stripe.started(3, 60);
  EXPECT_EQ(stripe.choose(60), 3u) << "120 / 300 is less than 60 / 100";
  stripe.started(3, 60);
  EXPECT_EQ(stripe.choose(60), 1u) << "as soon by either, so by the first";
  stripe.started(1, 60);
  EXPECT_EQ(stripe.choose(60), 3u);
  stripe.done(3, 60);
  EXPECT_EQ(stripe.choose(1), 3u);
}

TEST(Stripe, TheConnectionsOwnLinkCarriesNoneWhereThereAreLanes) {
  Stripe stripe;
  stripe.started(0, 10);  // before
  stripe.open(1, 1);
  stripe.done(0, 10);
  stripe.started(1, 1'000'000);
  EXPECT_EQ(stripe.choose(10), 1u);
}

// Bytes by each of two paths after a long time, with as many on the way as are let through, each path handing over its
// payloads in order and at its rate.
std::array<double, 2> run(std::array<uint64_t, 2> said, std::array<double, 2> real, double most) {
  Stripe stripe;
  for (size_t i = 0; i < 2; ++i) stripe.open(i + 1, said[i]);
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
      stripe.done(next + 1, done);
      sent[next] += static_cast<double>(done);
      on_the_way -= static_cast<double>(done);
    }
    const size_t path = stripe.choose(bytes) - 1;
    stripe.started(path + 1, bytes);
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
