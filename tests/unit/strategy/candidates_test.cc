#include "common/strategy/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/plan/schedule_name.h"
#include "common/ranks/random.h"
#include "common/topology/builders.h"
#include "tests/unit/strategy/links.h"

namespace gleaner::strategy {
namespace {

using testing::DoubleNear;
using testing::SizeIs;

constexpr double kByte = 8 / kBits;    // seconds per byte of a link
constexpr double kPathLatency = 5e-6;  // of two links

topology::Network star(uint32_t hosts) { return make_network(*topology::star(hosts, {kBits, 0, kPathLatency / 2})); }

// Returns the model of the candidate with this name; fails the test if there is none.
Model model_of(const std::vector<Candidate>& all, const std::string& name, const plan::Encoding& types = {}) {
  for (const Candidate& each : all) {
    if (name_of(each) == name) return each.model_of(types);
  }
  ADD_FAILURE() << name << " is no candidate";
  return {};
}

void expect_model(const Model& model, double latencies, double alone, double stream) {
  EXPECT_THAT(model.latency_seconds, DoubleNear(latencies * kPathLatency, 1e-12));
  EXPECT_THAT(model.alone_seconds_per_byte, DoubleNear(alone * kByte, alone * kByte * 1e-6));
  EXPECT_THAT(model.stream_seconds_per_byte, DoubleNear(stream * kByte, stream * kByte * 1e-6));
}

TEST(Candidates, ClosedFormsOnOneSwitch) {
  const auto all = candidates(star(8), 8, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  expect_model(model_of(*all, plan::kSummersStrategy), 2, 14, 1.75);
  expect_model(model_of(*all, "gather"), 3, 7, 7);
  expect_model(model_of(*all, "ring"), 14, 1.75, 1.75);
  expect_model(model_of(*all, "halving-doubling"), 6, 1.75, 1.75);
  expect_model(model_of(*all, "blueconnect 2,4"), 6, 1.75, 1.75);
}

// Partial sums of narrow types travel as fp32, complete ones as they are. The contributions of a worker with several
// local ranks are partial sums, too, unless the tensor is compressed.
TEST(Candidates, NarrowTypesHaveWidePartialSums) {
  const plan::Tensor plain{.type = DataType::kFloat16},
      compressed{.type = DataType::kFloat16, .memory = plan::Memory{}};
  for (const auto& [tensor, local_ranks] : {std::pair(plain, 1u), {plain, 2u}, {compressed, 2u}}) {
    const auto all = candidates(star(8), 8, 0);
    ASSERT_TRUE(all.ok()) << all.status();
    const plan::Encoding types = plan::encoding_of(tensor, local_ranks);
    const auto narrow = [&](const std::string& algorithm) { return model_of(*all, algorithm, types); };
    const double push = tensor.memory.has_value() ? 1 : local_ranks;  // bytes of a contribution for each byte of fp16
    expect_model(narrow("ring"), 14, 1.5 * 1.75, 1.5 * 1.75);
    expect_model(narrow("halving-doubling"), 6, 1.5 * 1.75, 1.5 * 1.75);
    expect_model(narrow("gather"), 3, push * 7, push * 7);
    expect_model(narrow(plan::kSummersStrategy), 2, (1 + push) * 7, (1 + push) * 7 / 8);
    expect_model(model_of(*all, "ring"), 14, 1.75, 1.75);
  }
}

TEST(Candidates, SchedulesWithPartialSumsAreNoChoiceForBlocks) {
  const auto all = candidates(star(8), 8, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  const std::vector<double> seconds = seconds_of(*all, 1 << 20, 1 << 20, plan::encoding_of({.type = kInt8Block}));
  for (size_t i = 0; i < seconds.size(); ++i) {
    const std::string name = name_of((*all)[i]);
    EXPECT_EQ(std::isfinite(seconds[i]), name == "summers" || name == "gather") << name;
  }
}

TEST(Candidates, MessagesOfAGatherHaveSeveralContributions) {
  const auto all = candidates(star(6), 6, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  const auto gather = std::ranges::find(*all, "gather", [](const auto& each) { return name_of(each); });
  EXPECT_EQ(gather->model.message_bytes, 2) << "6 ranks send 1, 2 and 2 blocks";
  EXPECT_EQ(gather->narrow_model.message_bytes, 2);
  EXPECT_EQ(gather->narrow_model_with_wide_pushes.message_bytes, 4);
  EXPECT_TRUE(gather->model.fits(2 << 20));
  EXPECT_FALSE(gather->narrow_model_with_wide_pushes.fits(2 << 20));
  NewTensor tensor{.bytes = 64 << 20, .by_default = 4 << 20};
  EXPECT_EQ(partition_bytes_of(*gather, tensor), 2u << 20);
  tensor.types = plan::encoding_of({.type = DataType::kBFloat16}, 2);
  EXPECT_EQ(partition_bytes_of(*gather, tensor), 1u << 20);
  tensor.asked = 64 << 10;
  EXPECT_EQ(partition_bytes_of(*gather, tensor), 32u << 10) << "contributions are twice as large";
}

TEST(Candidates, SummersShareTheLoad) {
  const auto all = candidates(star(16), 8, 8);
  ASSERT_TRUE(all.ok()) << all.status();
  expect_model(model_of(*all, plan::kSummersStrategy), 2, 16, 1);  // a summer owns more than a worker
}

TEST(Candidates, SlowUplinksSpareStagesInRacks) {
  // An uplink for four hosts is as fast as one host's link.
  const auto racks = make_network(*topology::racks(3, 4, {kBits, kBits, 0}));
  const auto all = candidates(racks, 12, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  const double in_racks_first = model_of(*all, "blueconnect 4,3").stream_seconds_per_byte;
  EXPECT_THAT(in_racks_first, DoubleNear(11.0 / 6 * kByte, 1e-15)) << "the hosts' own links bind";
  EXPECT_GT(model_of(*all, "blueconnect 3,4").stream_seconds_per_byte, in_racks_first);
  EXPECT_THAT(model_of(*all, plan::kSummersStrategy).stream_seconds_per_byte, DoubleNear(16.0 / 3 * kByte, 1e-15));
  model_of(*all, "racks 3,4");
  model_of(*all, "two-level 3,4");
}

// 144 has hundreds of ordered factorizations. The candidates are those whose first stage stays in a rack of 16 hosts
// behind a slow uplink, and few in number.
TEST(Candidates, StagesFitTheNetwork) {
  const auto racks = make_network(*topology::racks(9, 16, {kBits, kBits, kPathLatency / 2}));
  const auto all = candidates(racks, 144, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  size_t blueconnects = 0;
  double least = 1;
  for (const Candidate& each : *all) {
    if (!name_of(each).starts_with("blueconnect")) continue;
    ++blueconnects;
    least = std::min(least, each.model.stream_seconds_per_byte);
  }
  EXPECT_LE(blueconnects, 12u);
  model_of(*all, "blueconnect 16,3,3");
  EXPECT_THAT(least, DoubleNear(model_of(*all, "blueconnect 16,3,3").stream_seconds_per_byte, 1e-15));
}

// Returns all ordered factorizations of `rest` into factors of 2 and more.
std::vector<std::vector<uint32_t>> ordered_factorizations(uint32_t rest) {
  if (rest == 1) return {{}};
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t factor = 2; factor <= rest; ++factor) {
    if (rest % factor != 0) continue;
    for (std::vector<uint32_t>& factors : ordered_factorizations(rest / factor)) {
      factors.insert(factors.begin(), factor);
      all.push_back(std::move(factors));
    }
  }
  return all;
}

// Compares the candidates with all stages, in random racks: no other stages are faster by more than what Eq. 7 does not
// know, which is how partitions share links.
TEST(Candidates, NoOtherStagesAreFaster) {
  ranks::Random random(1);
  for (const auto& [racks, hosts] : {std::pair{3u, 4u}, {4u, 3u}, {4u, 16u}, {6u, 6u}}) {
    const uint32_t workers = racks * hosts;
    const double uplink = kBits * (0.5 + hosts * random.uniform());
    const auto network = make_network(*topology::racks(racks, hosts, {kBits, uplink, 1e-6 + 20e-6 * random.uniform()}));
    const auto all = candidates(network, workers, 0);
    ASSERT_TRUE(all.ok()) << all.status();
    std::vector<Candidate> others;
    for (std::vector<uint32_t>& factors : ordered_factorizations(workers)) {
      if (factors.size() == 1) continue;
      others.push_back(*candidate_of(network, workers, {.algorithm = "blueconnect", .factors = std::move(factors)}));
    }
    for (double bytes = 64; bytes <= 1 << 26; bytes *= 16) {
      const auto least = [&](const std::vector<Candidate>& some) {
        double seconds = std::numeric_limits<double>::infinity();
        for (const Candidate& each : some) {
          if (!name_of(each).starts_with("blueconnect")) continue;
          seconds = std::min(seconds, each.model.seconds(bytes, 4 << 20));
        }
        return seconds;
      };
      EXPECT_LE(least(*all), 1.05 * least(others)) << workers << " " << bytes;
    }
  }
}

// Stages of 2^k ranks have the steps of halving, however they are divided.
TEST(Candidates, StagesWithEqualStepsAreOne) {
  const auto all = candidates(star(64), 64, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(std::ranges::count_if(*all, [](const Candidate& each) { return name_of(each).starts_with("blueconnect"); }),
            1);
  const Model one = model_of(*all, "blueconnect 2,32");
  const Candidate other = *candidate_of(star(64), 64, {.algorithm = "blueconnect", .factors = {4, 2, 8}});
  EXPECT_NEAR(other.model.seconds(1 << 20, 1 << 20), one.seconds(1 << 20, 1 << 20), 1e-12);
}

TEST(Candidates, AlgorithmsThatDoNotServeAreLeftOut) {
  const auto all = candidates(star(7), 7, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const Candidate& each : *all) EXPECT_FALSE(name_of(each).starts_with("blueconnect"));
  EXPECT_THAT(*candidates(star(1), 1, 0), SizeIs(1));
}

TEST(Candidates, BadNetworksAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(candidates(star(4), 5, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(candidates(star(4), 0, 1).status()));
}

TEST(Fastest, SizesDecide) {
  const auto all = *candidates(star(8), 8, 0);
  const auto best = [&](double bytes) { return name_of(all[fastest(seconds_of(all, bytes, 1 << 20))]); };
  EXPECT_EQ(best(4), plan::kSummersStrategy) << "two messages";
  EXPECT_EQ(best(64 << 10), "halving-doubling") << "the owner's link carries all contributions to one partition";
  const auto with_summers = *candidates(star(16), 8, 8);
  EXPECT_TRUE(with_summers[fastest(seconds_of(with_summers, 64 << 20, 1 << 20))].is_by_summers());
}

TEST(Fastest, FewWorkersGatherSmallTensors) {
  const auto gathers = [](uint32_t workers, uint64_t bytes) {
    const auto all = *candidates(star(workers), workers, 0);
    const std::vector<double> seconds = seconds_of_new(all, {.bytes = bytes, .by_default = 64 << 10});
    EXPECT_EQ(name_of(all[1]), "gather");
    return seconds[1] < seconds[0];
  };
  EXPECT_TRUE(gathers(2, 64 << 10)) << "one message instead of two";
  EXPECT_TRUE(gathers(4, 256)) << "the link of one owner would carry 3 contributions and 3 results";
  EXPECT_FALSE(gathers(4, 64 << 10));
  EXPECT_FALSE(gathers(8, 4)) << "two messages instead of three";
}

TEST(Candidates, NewTensorsHavePartitionsThatFitTheStrategy) {
  const auto all = *candidates(star(8), 8, 0);
  const std::vector<double> seconds = seconds_of_new(all, {.bytes = 64 << 20, .by_default = 32 << 10});
  for (size_t i = 0; i < all.size(); ++i) {
    const double partition = all[i].is_by_summers() ? 32 << 10 : name_of(all[i]) == "ring" ? 256 << 10 : 0;
    if (partition > 0) {
      EXPECT_DOUBLE_EQ(seconds[i], all[i].model.seconds(64 << 20, partition)) << i;
    }
  }
}

TEST(Best, SummersStayUnlessAnotherGainsTenPercent) {
  EXPECT_EQ(fastest(std::vector<double>{1.05, 1, 1}), 1u) << "the first of equal ones";
  EXPECT_EQ(best(std::vector<double>{1.05, 1, 2}), 0u);
  EXPECT_EQ(best(std::vector<double>{1.15, 2, 1}), 2u);
}

TEST(Model, PartitionsFollowEachOther) {
  const Model model{1, 2, 3};
  EXPECT_EQ(model.seconds(0, 10), 1);
  EXPECT_EQ(model.seconds(10, 10), 21);
  EXPECT_EQ(model.seconds(12, 10), 27);
}

}  // namespace
}  // namespace gleaner::strategy
