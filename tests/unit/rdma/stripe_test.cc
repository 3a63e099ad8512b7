#include "common/transport/rdma/stripe.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

namespace gleaner::transport::rdma {
namespace {

TEST(Stripe, OnePathWithoutLanes) {
  Stripe stripe;
  EXPECT_EQ(stripe.paths(), 1u);
  EXPECT_EQ(stripe.choose(100), 0u);
}

TEST(Stripe, TakesPathThatDeliversFirst) {
  Stripe stripe;
  stripe.open(1, 100);
  stripe.open(3, 300);
  EXPECT_EQ(stripe.paths(), 2u);
  EXPECT_EQ(stripe.choose(60), 3u);
  stripe.started(3, 60);
  EXPECT_EQ(stripe.choose(60), 3u) << "120 / 300 is less than 60 / 100";
  stripe.started(3, 60);
  EXPECT_EQ(stripe.choose(60), 1u) << "both paths deliver at the same time, so the first is taken";
  stripe.started(1, 60);
  EXPECT_EQ(stripe.choose(60), 3u);
  stripe.done(3, 60, absl::ZeroDuration());
  EXPECT_EQ(stripe.choose(1), 3u);
}

TEST(Stripe, LanesReplaceTheMainPath) {
  Stripe stripe;
  stripe.started(0, 10);  // before there are lanes
  stripe.open(1, 1);
  stripe.done(0, 10, absl::ZeroDuration());
  stripe.started(1, 1'000'000);
  EXPECT_EQ(stripe.choose(10), 1u);
}

// Two paths that deliver their payloads in order, each at its own rate in bytes per second.
class Wires {
 public:
  Wires(std::array<uint64_t, 2> said, std::array<double, 2> real) : real_(real) {
    for (size_t i = 0; i < 2; ++i) stripe_.open(i + 1, said[i]);
  }

  // Returns the time for sending the payloads if at most `window` of them, counted from the first that has not arrived,
  // may be in flight.
  double seconds_for(size_t payloads, uint64_t bytes, size_t window) {
    std::deque<bool> there;  // arrived or not, from the first payload that has not arrived
    size_t begun = 0;
    const double begin = now_;
    while (begun < payloads || !there.empty()) {
      while (begun < payloads && there.size() < window) {
        send(bytes, base_ + there.size());
        there.push_back(false);
        ++begun;
      }
      there[receive() - base_] = true;
      while (!there.empty() && there.front()) {
        there.pop_front();
        ++base_;
      }
    }
    return now_ - begin;
  }

  // Sends payloads of random sizes, with at most `most` bytes in flight, which may arrive in any order.
  void keep_busy(size_t payloads, double most) {
    std::mt19937 random(5);
    for (size_t i = 0; i < payloads; ++i) {
      const uint64_t bytes = 500 + random() % 1000;
      while (on_the_way_ + static_cast<double>(bytes) > most) receive();
      send(bytes, i);
    }
  }

  void pause(double seconds) { now_ += seconds; }
  void become(size_t wire, double real) { real_[wire] = real; }
  double ratio() const { return sent_[1] / sent_[0]; }

 private:
  struct Payload {
    uint64_t bytes;
    size_t number;
    double at;  // when it arrives
  };
  void send(uint64_t bytes, size_t number) {
    const size_t path = stripe_.choose(bytes) - 1;
    stripe_.started(path + 1, bytes);
    free_at_[path] = std::max(free_at_[path], now_) + static_cast<double>(bytes) / real_[path];
    waiting_[path].push_back({bytes, number, free_at_[path]});
    on_the_way_ += static_cast<double>(bytes);
  }
  size_t receive() {
    const auto at = [&](size_t path) { return waiting_[path].empty() ? 1e300 : waiting_[path].front().at; };
    const size_t path = at(0) <= at(1) ? 0 : 1;
    const Payload payload = waiting_[path].front();
    waiting_[path].pop_front();
    now_ = payload.at;
    stripe_.done(path + 1, payload.bytes, absl::Seconds(now_));
    sent_[path] += static_cast<double>(payload.bytes);
    on_the_way_ -= static_cast<double>(payload.bytes);
    return payload.number;
  }

  Stripe stripe_;
  std::array<double, 2> real_;
  std::array<std::deque<Payload>, 2> waiting_;
  std::array<double, 2> free_at_{};
  std::array<double, 2> sent_{};
  double on_the_way_ = 0;
  double now_ = 0;
  size_t base_ = 0;
};

TEST(Stripe, SharesByBandwidth) {
  Wires wires({100, 300}, {100, 300});
  wires.keep_busy(20'000, 20'000);
  EXPECT_NEAR(wires.ratio(), 3, 0.15);
}

TEST(Stripe, FollowsMeasuredBandwidth) {
  Wires wires({100, 100}, {100, 300});
  wires.keep_busy(20'000, 20'000);
  EXPECT_NEAR(wires.ratio(), 3, 0.3);
}

constexpr uint64_t kMiB = 1 << 20;

// If few payloads may be in flight in order, one that takes long on a slow path holds up all later ones.
TEST(Stripe, FewPayloadsAvoidSlowPath) {
  for (const std::array<double, 2> real : {std::array{10e6, 30e6}, std::array{30e6, 10e6}, std::array{20e6, 20e6}}) {
    Wires wires({100'000'000'000, 100'000'000'000}, real);
    (void)wires.seconds_for(20, kMiB, 8);
    EXPECT_LT(wires.seconds_for(400, kMiB, 8), 1.1 * 400 * kMiB / 40e6) << real[0] << " and " << real[1];
  }
}

TEST(Stripe, DetectsPathThatGetsFaster) {
  Wires wires({100, 100}, {1e6, 30e6});
  (void)wires.seconds_for(100, kMiB, 8);
  wires.become(0, 30e6);
  (void)wires.seconds_for(300, kMiB, 8);
  EXPECT_LT(wires.seconds_for(400, kMiB, 8), 1.1 * 400 * kMiB / 60e6);
}

TEST(Stripe, StatedBandwidthCountsAgainLater) {
  Wires wires({300, 100}, {1e6, 30e6});
  (void)wires.seconds_for(100, kMiB, 8);
  wires.pause(60);
  const double before = wires.ratio();
  (void)wires.seconds_for(2, 1000, 1);
  EXPECT_LT(wires.ratio(), before) << "the path with the higher reported speed gets payloads again";
}

}  // namespace
}  // namespace gleaner::transport::rdma
