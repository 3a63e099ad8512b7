// Tests of the choice of machines for summers: their suitability, bandwidth and order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"

#include "common/placement/placement.h"
#include "tests/unit/placement/machines.h"

namespace gleaner::placement {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SummerRequest request() {
  SummerRequest request;
  request.job = "team/digits";
  request.cpus = 0.5;
  request.memory_bytes = uint64_t{1} << 30;
  request.min_bits_per_second = 1e9;
  return request;
}

std::string why_not(const Machine& machine, const SummerRequest& request) {
  const Verdict verdict = judge_summer(machine, request, kNow);
  EXPECT_FALSE(verdict.fits);
  EXPECT_EQ(verdict.score, 0u);
  EXPECT_EQ(verdict.bits_per_second, 0);
  return verdict.refusal.why_not;
}

std::string why_not(const std::function<void(api::NodeProfile&)>& change) {
  api::NodeProfile profile = spare_profile("n1");
  change(profile);
  return why_not(machine_of(std::move(profile)), request());
}

TEST(JudgeSummer, AcceptsAMachineWithSpareCapacity) {
  const Verdict verdict = judge_summer(spare_machine("n1"), request(), kNow);
  EXPECT_TRUE(verdict.fits);
  EXPECT_EQ(verdict.refusal.why_not, "");
  EXPECT_EQ(verdict.bits_per_second, 20e9);
  EXPECT_EQ(verdict.score, 67u);  // 60 * 20 / 45 + 25 + 15
}

TEST(JudgeSummer, RequiresAReadyMachineWithAFreshProfile) {
  Machine machine = spare_machine("n1");
  machine.schedulable = false;
  EXPECT_THAT(why_not(machine, request()), HasSubstr("cordoned"));
  machine = spare_machine("n1");
  machine.profile = nullptr;
  EXPECT_THAT(why_not(machine, request()), HasSubstr("no agent has reported"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.observed_time = kNow - absl::Seconds(121); }),
              HasSubstr("121 s old"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.observed_time = kNow + absl::Seconds(121); }),
              HasSubstr("clock is 121 s ahead"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.observed_time = absl::InfinitePast(); }),
              HasSubstr("not reported yet"));
  api::NodeProfile profile = spare_profile("n1");
  profile.status.observed_time = kNow - kProfileLife;
  EXPECT_TRUE(judge_summer(machine_of(profile), request(), kNow).fits);
}

TEST(JudgeSummer, RefusesContradictoryProfiles) {
  EXPECT_THAT(why_not([](auto& profile) { profile.status.speed_source = api::SpeedSource::kUnknown; }),
              HasSubstr("gleaner.dev/bandwidth"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.bits_per_second = 0; }), HasSubstr("not known"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.bits_per_second = 1e15; }), HasSubstr("no link has"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.bits_per_second = -1; }), HasSubstr("no link has"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.bits_per_second = 26e9; }),
              HasSubstr("more bandwidth to spare"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.bits_per_second = std::nan(""); }),
              HasSubstr("more bandwidth to spare"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.cpus = 33; }), HasSubstr("more CPU to spare"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.memory_bytes = uint64_t{65} << 30; }),
              HasSubstr("more memory to spare"));
  EXPECT_THAT(why_not([](auto& profile) { profile.status.used_bits_per_second = -1; }), HasSubstr("negative use"));
  EXPECT_THAT(why_not([](auto& profile) {
                profile.status.conditions.push_back(
                    {.type = "Ready", .status = false, .reason = "NoSysfs", .message = "no sysfs"});
              }),
              HasSubstr("not ready: no sysfs"));
}

TEST(JudgeSummer, RefusesMachinesOfTheSameJob) {
  SummerRequest wanted = request();
  wanted.worker_nodes = {"n1"};
  wanted.summer_nodes = {"n2"};
  EXPECT_THAT(why_not(spare_machine("n1"), wanted), HasSubstr("share the worker's link"));
  EXPECT_THAT(why_not(spare_machine("n2"), wanted), HasSubstr("runs on it already"));
  EXPECT_TRUE(judge_summer(spare_machine("n3"), wanted, kNow).fits);
}

TEST(JudgeSummer, NamesTheScarceResource) {
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.cpus = 0.4; }), "spare CPU 0.4 is below 0.5");
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.memory_bytes = uint64_t{1} << 29; }),
              "spare memory 512.00 MiB is below 1.00 GiB");
  EXPECT_THAT(why_not([](auto& profile) { profile.status.spare.bits_per_second = 2e8; }),
              "spare bandwidth 200 Mbit/s is below 1 Gbit/s");
  SummerRequest any = request();
  any.min_bits_per_second = 0;
  api::NodeProfile profile = spare_profile("n1");
  profile.status.spare.bits_per_second = 0;
  EXPECT_THAT(why_not(machine_of(profile), any), "no bandwidth to spare");
}

TEST(JudgeSummer, CountsPromisesToOtherSummers) {
  Machine machine = spare_machine("n1");
  machine.commitment = {.summers = 2, .summer_cpus = 9.6, .summer_bits_per_second = 0};
  EXPECT_THAT(why_not(machine, request()), "spare CPU 0.4 is below 0.5");
  // 12 of 20 spare Gbit/s are promised to the summer there. The summer's actual use does not matter, since the agent
  // counts it as spare.
  machine.commitment = {.summers = 1, .summer_cpus = 0.1, .summer_bits_per_second = 12e9};
  EXPECT_EQ(judge_summer(machine, request(), kNow).bits_per_second, 8e9);
  machine.commitment.summer_bits_per_second = 1e12;
  EXPECT_THAT(why_not(machine, request()), "no bandwidth to spare");
}

TEST(JudgeSummer, RespectsTheLimitOfTheRequest) {
  SummerRequest limited = request();
  limited.max_bits_per_second = 10e9;
  EXPECT_EQ(judge_summer(spare_machine("n1"), limited, kNow).bits_per_second, 10e9);
  EXPECT_EQ(judge_summer(spare_machine("n1"), limited, kNow).score, 100u);
  limited.max_bits_per_second = 40e9;
  EXPECT_EQ(judge_summer(spare_machine("n1"), limited, kNow).score, 70u);
}

TEST(SummerCandidates, BestFirst) {
  std::vector<Machine> fleet;
  for (const auto& [name, spare_bits_per_second, cpus, summers] : {std::tuple{"slow", 2e9, 10.0, 0u},
                                                                   {"busy", 20e9, 0.6, 0u},
                                                                   {"fast", 24e9, 10.0, 0u},
                                                                   {"shared", 20e9, 10.0, 3u},
                                                                   {"free-b", 20e9, 10.0, 0u},
                                                                   {"free-a", 20e9, 10.0, 0u},
                                                                   {"unfit", 1e8, 10.0, 0u}}) {
    api::NodeProfile profile = spare_profile(name);
    profile.status.spare.bits_per_second = spare_bits_per_second;
    profile.status.spare.cpus = cpus;
    fleet.push_back(machine_of(std::move(profile)));
    fleet.back().commitment.summers = summers;
  }
  std::vector<const Machine*> machines;
  for (const Machine& machine : fleet) machines.push_back(&machine);
  std::vector<std::string> order;
  for (const Candidate& candidate : summer_candidates(machines, request(), kNow)) order.push_back(candidate.node);
  EXPECT_THAT(order, ElementsAre("fast", "free-a", "free-b", "shared", "busy", "slow"));
}

// Makes random machines, valid and invalid ones.
class Property : public testing::TestWithParam<uint32_t> {
 protected:
  Property() : random_(GetParam()) { RecordProperty("seed", static_cast<int>(GetParam())); }
  double amount(double most) { return std::uniform_real_distribution<>(0, most)(random_); }
  bool once_in(uint32_t n) { return random_() % n == 0; }
  double odd(double sane) {
    switch (random_() % 40) {
      case 0:
        return std::nan("");
      case 1:
        return std::numeric_limits<double>::infinity();
      case 2:
        return -sane;
      case 3:
        return sane * 1e9;
      default:
        return sane;
    }
  }
  Machine machine() {
    api::NodeProfile profile = spare_profile(absl::StrCat("n", random_() % 8));
    auto& status = profile.status;
    status.bits_per_second = odd(amount(100e9));
    status.spare.bits_per_second = odd(amount(1) * status.bits_per_second);
    status.used_bits_per_second = odd(amount(1) * status.bits_per_second);
    status.spare.cpus = odd(amount(32));
    status.spare.memory_bytes = static_cast<uint64_t>(amount(70) * (1 << 30));
    status.observed_time = kNow + absl::Seconds(amount(300) - 150);
    Machine machine = machine_of(std::move(profile));
    machine.schedulable = !once_in(20);
    if (once_in(20)) machine.profile = nullptr;
    machine.commitment = {static_cast<uint32_t>(random_() % 4), amount(5), amount(50e9)};
    return machine;
  }
  SummerRequest wanted() {
    SummerRequest wanted;
    wanted.cpus = amount(4);
    wanted.memory_bytes = static_cast<uint64_t>(amount(20) * (1 << 30));
    wanted.min_bits_per_second = amount(5e9);
    if (once_in(2)) wanted.max_bits_per_second = wanted.min_bits_per_second + amount(20e9);
    if (once_in(4)) wanted.worker_nodes = {"n1", "n2"};
    if (once_in(4)) wanted.summer_nodes = {"n3"};
    return wanted;
  }
  std::mt19937 random_;
};

TEST_P(Property, AcceptedMachinesHaveTheRequiredSpares) {
  uint32_t fit = 0;
  for (int i = 0; i < 2000; ++i) {
    const Machine where = machine();
    const SummerRequest what = wanted();
    const Verdict verdict = judge_summer(where, what, kNow);
    ASSERT_EQ(verdict.fits, verdict.refusal.why_not.empty());
    ASSERT_LE(verdict.score, 100u);
    if (!verdict.fits) continue;
    ++fit;
    const api::Spare& spare = where.profile->status.spare;
    ASSERT_TRUE(where.schedulable);
    ASSERT_FALSE(what.worker_nodes.contains(where.name) || what.summer_nodes.contains(where.name));
    ASSERT_LE(absl::AbsDuration(kNow - where.profile->status.observed_time), kProfileLife);
    ASSERT_GE(spare.cpus, what.cpus + where.commitment.summer_cpus - 1e-9);
    ASSERT_GE(spare.memory_bytes, what.memory_bytes);
    ASSERT_GE(verdict.bits_per_second, what.min_bits_per_second);
    ASSERT_GT(verdict.bits_per_second, 0);
    ASSERT_LE(verdict.bits_per_second, spare.bits_per_second);
    if (what.max_bits_per_second > 0) {
      ASSERT_LE(verdict.bits_per_second, what.max_bits_per_second);
    }
  }
  EXPECT_GT(fit, 50u);
}

// More spare resources never make a machine worse, and more commitments never make it better.
TEST_P(Property, MoreSparesNeverHurtAndMoreCommitmentsNeverHelp) {
  for (int i = 0; i < 2000; ++i) {
    const Machine where = machine();
    const SummerRequest what = wanted();
    const Verdict before = judge_summer(where, what, kNow);
    if (!before.fits) continue;
    api::NodeProfile richer = *where.profile;
    richer.status.cpus = 64;
    richer.status.spare.cpus += amount(10);
    richer.status.bits_per_second += 10e9;
    richer.status.spare.bits_per_second += amount(10e9);
    Machine better = where;
    better.profile = std::make_shared<const api::NodeProfile>(richer);
    const Verdict after = judge_summer(better, what, kNow);
    ASSERT_TRUE(after.fits) << after.refusal.why_not;
    ASSERT_GE(after.score, before.score);
    ASSERT_GE(after.bits_per_second, before.bits_per_second);
    Machine worse = where;
    worse.commitment.summers += 1;
    worse.commitment.summer_cpus += amount(1);
    worse.commitment.summer_bits_per_second += amount(10e9);
    const Verdict promised = judge_summer(worse, what, kNow);
    ASSERT_LE(promised.score, before.score);
    ASSERT_LE(promised.bits_per_second, before.bits_per_second);
  }
}

TEST_P(Property, CandidatesAreTheSuitableMachinesInAnyOrder) {
  std::vector<Machine> fleet;
  for (int i = 0; i < 200; ++i) {
    fleet.push_back(machine());
    fleet.back().name = absl::StrCat("n", i);
  }
  std::vector<const Machine*> machines;
  size_t fit = 0;
  const SummerRequest what = request();
  for (const Machine& where : fleet) {
    machines.push_back(&where);
    fit += judge_summer(where, what, kNow).fits;
  }
  const auto order = [&] {
    std::vector<std::string> names;
    for (const Candidate& candidate : summer_candidates(machines, what, kNow)) names.push_back(candidate.node);
    return names;
  };
  const auto sorted = order();
  EXPECT_EQ(sorted.size(), fit);
  std::shuffle(machines.begin(), machines.end(), random_);
  EXPECT_EQ(order(), sorted);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Property, testing::Range(0u, 8u));

}  // namespace
}  // namespace gleaner::placement
