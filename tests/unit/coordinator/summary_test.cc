#include "coordinator/status/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Summary, JsonReplacesBytesThatAreNoText) {
  Summary summary;
  summary.workers = 4;
  summary.whole.efficiency = 0.25;
  summary.error = "bytes that are no text: \xff";
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["workers"], 4);
  EXPECT_EQ(json["efficiency"], 0.25);
}

TEST(Summary, TheTableShowsStepsOnlyIfThereWereAny) {
  Summary summary;
  summary.workers = 1;
  EXPECT_EQ(to_table(summary).find("efficiency"), std::string::npos);
  summary.whole.steps = 3;
  summary.whole.efficiency = 0.5;
  summary.whole.basis = Basis::kBandwidth;
  EXPECT_THAT(to_table(summary), AllOf(HasSubstr("efficiency"), HasSubstr("50.0 %"), HasSubstr("k = 0")));
  summary.whole.basis = Basis::kLatency;
  EXPECT_THAT(to_table(summary), AllOf(HasSubstr("latency-bound"), Not(HasSubstr("%"))));
  summary.whole.basis = Basis::kBandwidthTooLow;
  EXPECT_THAT(to_table(summary), AllOf(HasSubstr("faster than --bandwidth says"), Not(HasSubstr("%"))));
}

TEST(Summary, TellsTheWaitFromCommunication) {
  Summary summary;
  summary.whole.steps = 10;
  summary.whole.step_communication_seconds = 0.005;
  EXPECT_THAT(to_table(summary), Not(HasSubstr("wait for late ranks")));
  summary.whole.step_wait_seconds = 1.3;
  summary.whole.waited_for = {{2, 13}, {0, 0.5}};
  EXPECT_THAT(to_table(summary),
              testing::ContainsRegex("wait for late ranks per step +1.3 s; 13 s in all for rank 2\n"));
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["step_wait_seconds"], 1.3);
  EXPECT_EQ(json["last_minute"]["step_wait_seconds"], 0);
  ASSERT_EQ(json["waited_for"].size(), 2);
  EXPECT_EQ(json["waited_for"][0]["rank"], 2);
  EXPECT_EQ(json["waited_for"][0]["seconds"], 13);
}

TEST(Summary, TellsTheBytesThatCompressionSaves) {
  Summary summary;
  summary.whole.steps = 10;
  summary.whole.bytes_per_step = 2 << 20;
  summary.whole.dense_bytes_per_step = 4 << 20;
  EXPECT_THAT(to_table(summary),
              testing::ContainsRegex("bytes per step +2.00 MiB instead of 4.00 MiB \\(2.00 times fewer\\)\n"));
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["bytes_per_step"], 2 << 20);
  EXPECT_EQ(json["dense_bytes_per_step"], 4 << 20);
}

TEST(Summary, NamesTheClassOfBits) {
  Summary summary;
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["other_bits"], nullptr);
  EXPECT_THAT(to_table(summary), testing::ContainsRegex("bits +RankOrder\n"));
  summary.bits.other = {plan::Bits::kSchedule, 0.0012, 0.0019, "ring"};
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["bits"], "RankOrder");
  EXPECT_EQ(json["other_bits"]["bits"], "Schedule");
  EXPECT_EQ(json["other_bits"]["seconds"], 0.0012);
  EXPECT_EQ(json["other_bits"]["instead_of_seconds"], 0.0019);
  EXPECT_EQ(json["other_bits"]["strategy"], "ring");
  EXPECT_THAT(to_table(summary), HasSubstr("RankOrder; " + describe(*summary.bits.other)));
}

TEST(Summary, TellsThePacksThatRank0HasChosen) {
  Summary summary;
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["packs"], nullptr);
  EXPECT_THAT(to_table(summary), testing::Not(HasSubstr("packs")));
  summary.packs = {262144, 0.315, 0.755};
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["packs"],
            nlohmann::json::parse(R"({"fusion_bytes": 262144.0, "seconds": 0.315, "seconds_without_packs": 0.755})"));
  EXPECT_THAT(to_table(summary), testing::ContainsRegex("packs +gradients of at most 256.00 KiB; they are predicted to "
                                                        "be averages 315 ms after the first of a step, without packs "
                                                        "755 ms\n"));
  summary.packs->fusion_bytes = std::numeric_limits<double>::infinity();
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["packs"]["fusion_bytes"], "inf");
  EXPECT_THAT(to_table(summary), HasSubstr("all gradients in one; they are"));
  summary.packs->fusion_bytes = 0;
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["packs"]["fusion_bytes"], nullptr);
  EXPECT_THAT(to_table(summary), HasSubstr("none; gradients are predicted to be averages 755 ms"));
}

TEST(Summary, HasTheLastMinuteAndEachEpoch) {
  Summary summary;
  summary.whole.basis = Basis::kUnknownBandwidth;
  summary.window.steps = 7;
  summary.window.basis = Basis::kBandwidth;
  summary.window.efficiency = 0.75;
  summary.epochs.resize(2);
  summary.epochs[1].epoch = 9;
  summary.epochs[1].summers = 3;
  summary.epochs[1].figures.goodput_bytes_per_second = 1e9;
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["efficiency_basis"], "unknown_bandwidth");
  EXPECT_EQ(json["last_minute"]["steps"], 7);
  EXPECT_EQ(json["last_minute"]["efficiency"], 0.75);
  EXPECT_EQ(json["last_minute"]["efficiency_basis"], "bandwidth");
  ASSERT_EQ(json["epochs"].size(), 2);
  EXPECT_EQ(json["epochs"][1]["epoch"], 9);
  EXPECT_EQ(json["epochs"][1]["summers"], 3);
  EXPECT_EQ(json["epochs"][1]["goodput_bytes_per_second"], 1e9);
  EXPECT_EQ(json["epochs"][0]["efficiency_basis"], "nothing_measured");
}

}  // namespace
}  // namespace gleaner::coordinator
