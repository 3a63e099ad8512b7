// Tests with the figures of BytePS §4.2.1. Its printed times J* = 0.129 s and J(0) = 0.141 s do not follow from its
// 13.1 GB/s, which give 0.12214 s and 0.13359 s; and J_ca is 23.81 % below J_ar, not 23.7 %.
#include "common/machine/cpu_assisted.h"

#include <gmock/gmock.h>

namespace gleaner::machine {
namespace {

constexpr double kPcie = 13.1e9 * 8;  // bits per second
constexpr SwitchLinks kFour = {.gpus = 4, .gpu_bits_per_second = kPcie, .cpu_bits_per_second = kPcie};

// Returns the share with the least J(x) of a million.
double searched_share(const SwitchLinks& links) {
  double best = 0;
  for (int i = 0; i <= 1'000'000; ++i) {
    const double share = i * 1e-6;
    if (completion_seconds(links, 1, share) < completion_seconds(links, 1, best)) best = share;
  }
  return best;
}

TEST(CpuAssisted, TrafficOfEquations8And9) {
  const SwitchTraffic assisted = switch_traffic(4, 0), brute = switch_traffic(4, 1), mixed = switch_traffic(4, 0.2);
  EXPECT_DOUBLE_EQ(assisted.cpu_link, 1);
  EXPECT_DOUBLE_EQ(assisted.gpu_link, 7.0 / 4);
  EXPECT_DOUBLE_EQ(brute.cpu_link, 4);
  EXPECT_DOUBLE_EQ(brute.gpu_link, 1);
  EXPECT_DOUBLE_EQ(mixed.cpu_link, 4 * 0.2 + 0.8);
  EXPECT_DOUBLE_EQ(mixed.gpu_link, 1.75 * 0.8 + 0.2);
}

TEST(CpuAssisted, CompletionTimes) {
  for (const double x : {0.0, 0.1, 0.2, 0.5, 1.0}) {
    EXPECT_NEAR(completion_seconds(kFour, 1e9, x), std::max((3 * x + 1) / 13.1, (7 - 3 * x) / 52.4), 1e-12) << x;
  }
  EXPECT_NEAR(completion_seconds(kFour, 1e9, 0.2), 0.12214, 5e-6);
  EXPECT_NEAR(completion_seconds(kFour, 1e9, 0), 0.13359, 5e-6);
}

TEST(CpuAssisted, BestShareOfEqualLinks) {
  for (uint32_t n = 2; n <= 16; ++n) {
    const SwitchLinks links = {n, kPcie, kPcie};
    const double share = best_brute_force_share(links);
    EXPECT_NEAR(share, 1.0 / (n + 1), 1e-12);
    EXPECT_NEAR(completion_seconds(links, 1e9, share), 8e9 * 2 * n / (n + 1) / kPcie, 1e-12) << "2nM/((n+1)b)";
  }
  EXPECT_NEAR(completion_seconds(kFour, 1e9, 0) / completion_seconds(kFour, 1e9, 0.2), 1.09375, 1e-12);
}

TEST(CpuAssisted, BestShareAgreesWithSearch) {
  for (const double ratio : {0.2, 0.5, 0.9, 1.0, 1.3, 1.75, 2.0, 4.0}) {
    for (const uint32_t n : {2u, 3u, 4u, 8u}) {
      const SwitchLinks links = {n, ratio * kPcie, kPcie};
      EXPECT_NEAR(best_brute_force_share(links), searched_share(links), 2e-6) << n << " GPUs, ratio " << ratio;
    }
  }
}

TEST(CpuAssisted, BestShareStaysWithinLimits) {
  EXPECT_EQ(best_brute_force_share({4, 100 * kPcie, kPcie}), 0) << "only the link to the CPU limits";
  EXPECT_EQ(best_brute_force_share({4, kPcie, 100 * kPcie}), 1) << "only the GPUs' links limit";
  EXPECT_EQ(best_brute_force_share({1, kPcie, kPcie}), 0);
}

TEST(CpuAssisted, BeatsRingAllReduce) {
  const SwitchLinks links = {4, 105e9, 105e9};
  const double ca = completion_seconds(links, 1e9, 0), ar = ring_seconds(8, 1e9, 80e9);
  EXPECT_NEAR(1 - ca / ar, 0.2381, 5e-5);
  EXPECT_NEAR(1 - completion_seconds(kFour, 1e9, 0) / ar, 0.2366, 5e-5);
  // J_ca = M/b(S,C) max(1, (2n-1)/(kn)) with k = b(N,S)/b(S,C).
  EXPECT_NEAR(completion_seconds({4, 3 * 105e9, 105e9}, 1e9, 0), 8e9 / 105e9, 1e-12);
  EXPECT_NEAR(completion_seconds({4, 0.5 * 105e9, 105e9}, 1e9, 0), 8e9 / 105e9 * 3.5, 1e-12);
}

}  // namespace
}  // namespace gleaner::machine
