#include "common/machine/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/unit/machine/machine_files.h"

namespace gleaner::machine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string text_for(const std::string& name) {
  const Machine machine = machine_file(name);
  return to_text(machine, choice_for(machine));
}

TEST(MachineReport, ShowsChoiceAndReason) {
  EXPECT_THAT(text_for("nvlink-8"),
              AllOf(HasSubstr("4 PCIe switches with GPUs (1 with a NIC, 3 without)"), HasSubstr("Best way    roots: "),
                    HasSubstr("in turn, gpu2, gpu3"), HasSubstr("Gleaner does not go this way yet"),
                    HasSubstr("Today       reduce-scatter: "), HasSubstr("Runner-up   gpu-direct: "),
                    HasSubstr("impossible: GPU gpu2 is not known to share a PCIe switch with an RDMA NIC")));
}

TEST(MachineReport, ShowsLimitOfCpuAssisted) {
  Machine machine = machine_file("pcie-8");
  machine.nics[0].bandwidth = {200e9, false};
  EXPECT_THAT(to_text(machine, choice_for(machine)),
              HasSubstr("if 0.2 of each gradient went to host memory by brute force"));
}

TEST(MachineReport, MarksAssumedBandwidths) {
  EXPECT_THAT(text_for("hgx-8"), AllOf(HasSubstr("105 Gbit/s *"), HasSubstr("1.2 Tbit/s *"), HasSubstr("400 Gbit/s)"),
                                       HasSubstr("they are not measured")));
  EXPECT_THAT(text_for("nvlink-8"), Not(HasSubstr("*")));
}

TEST(MachineReport, ListsGapsOfProfile) {
  EXPECT_THAT(text_for("cloud-vm"), AllOf(HasSubstr("Unknown     GPUs without a visible PCIe switch"),
                                          HasSubstr("\n            No NVSwitch is visible"), Not(HasSubstr("Today"))));
}

TEST(MachineReport, JsonHasAllWays) {
  const Machine machine = machine_file("hgx-8");
  const nlohmann::json report = to_json(machine, choice_for(machine));
  EXPECT_EQ(report["best"], "gpu-direct");
  EXPECT_EQ(report["today"], "reduce-scatter");
  ASSERT_EQ(report["ways"].size(), 6u);
  EXPECT_EQ(report["ways"][0]["runs"], true);
  EXPECT_EQ(report["ways"][1]["possible"], false);
  const nlohmann::json& best = report["ways"][4];
  EXPECT_EQ(best["runs"], false);
  EXPECT_THAT(best["why_not_run"].get<std::string>(), HasSubstr("does not go this way yet"));
  for (const nlohmann::json& link : best["links"]) {
    if (!link.contains("bandwidth")) continue;
    EXPECT_EQ(link["assumed"], link["bandwidth"] != 400e9) << link;
  }
}

}  // namespace
}  // namespace gleaner::machine
