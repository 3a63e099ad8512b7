#include "common/machine/choice.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/machine/machine_files.h"

namespace gleaner::machine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Fig. 14(b), §7.3: roots 2, and 2 and 3, are best and about equal; all GPUs are worse, and GPU 0 is worst.
TEST(Choice, OrderOfRoots) {
  const Machine machine = machine_file("nvlink-8");
  // 2(n-1)/n of the 8 machines of Fig. 14, one summer per worker beside them, and many machines.
  for (const double network_share : {1.75, 1.0, 2.0}) {
    const Step step{.network_share = network_share};
    const auto seconds = [&](std::vector<uint32_t> roots) {
      return with_roots(machine, step, std::move(roots)).seconds;
    };
    EXPECT_DOUBLE_EQ(seconds({2}), 8e9 * network_share / 100e9) << "only the NIC limits";
    EXPECT_DOUBLE_EQ(seconds({2, 3}), seconds({2}));
    EXPECT_GT(seconds({0, 1, 2, 3, 4, 5, 6, 7}), seconds({2}) * 1.01);
    EXPECT_GT(seconds({0}), seconds({0, 1, 2, 3, 4, 5, 6, 7}) * 1.01);
  }
}

TEST(Choice, CountsSwitches) {
  const auto counts = [](const std::string& name) {
    const SwitchCounts found = count_switches(machine_file(name));
    return std::vector<uint32_t>{found.with_nic, found.without_nic, found.is_asymmetric()};
  };
  EXPECT_THAT(counts("nvlink-8"), ElementsAre(1, 3, 1));
  EXPECT_THAT(counts("pcie-8"), ElementsAre(0, 2, 0));
  EXPECT_THAT(counts("pcie-8-nic"), ElementsAre(1, 1, 1));
  EXPECT_THAT(counts("hgx-8"), ElementsAre(8, 0, 0));
  EXPECT_THAT(counts("one-gpu"), ElementsAre(0, 0, 0));
}

TEST(Choice, NvlinkMachineReducesAwayFromNic) {
  const Choice choice = choice_for(machine_file("nvlink-8"));
  EXPECT_EQ(choice.chosen().way, Way::kRoots);
  EXPECT_THAT(choice.chosen().roots, ElementsAre(2, 3)) << "off the NIC's switch, on its NUMA node";
  EXPECT_EQ(choice.chosen().links[choice.chosen().busiest].kind, LinkKind::kNic);
  EXPECT_FALSE(choice.chosen().runs());
  EXPECT_EQ(choice.candidates[choice.current].way, Way::kReduceScatter);
  EXPECT_THAT(choice.chosen().why, HasSubstr("gpu2, gpu3"));
}

TEST(Choice, RootsSpreadWhereNearOnesLimit) {
  Machine machine = machine_file("nvlink-8");
  machine.nics[0].bandwidth = machine.switches[0].bandwidth = {400e9, false};
  const Candidate spread = candidate_of(choice_for(machine), Way::kRoots);
  EXPECT_THAT(spread.roots, ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_LT(spread.seconds, with_roots(machine, {}, {2, 3}).seconds);
}

TEST(Choice, PcieMachinesAreAssistedByCpu) {
  for (const char* name : {"pcie-8", "pcie-8-nic"}) {
    const Choice choice = choice_for(machine_file(name));
    EXPECT_EQ(choice.chosen().way, Way::kCpuAssisted) << name;
    EXPECT_FALSE(candidate_of(choice, Way::kRoots).is_possible());
    EXPECT_FALSE(candidate_of(choice, Way::kGpuDirect).is_possible());
  }
}

TEST(Choice, MixOfPcieMachine) {
  const Choice choice = choice_for(machine_file("pcie-8"), {.network_share = 1});
  ASSERT_TRUE(choice.mix.has_value());
  EXPECT_NEAR(choice.mix->brute_force_share, 0.2, 1e-9);
  EXPECT_NEAR(choice.chosen().seconds / choice.mix->seconds, 1.09375, 1e-9);
  EXPECT_FALSE(choice_for(machine_file("pcie-8-nic")).mix.has_value()) << "the NIC's switch is busiest at each share";
}

TEST(Choice, OneGpuCopies) {
  const Choice choice = choice_for(machine_file("one-gpu"));
  EXPECT_EQ(choice.chosen().way, Way::kCopy);
  EXPECT_TRUE(choice.chosen().runs());
  EXPECT_EQ(choice.runner_up, std::nullopt);
}

TEST(Choice, VirtualMachineCopies) {
  const Choice choice = choice_for(machine_file("cloud-vm"));
  EXPECT_EQ(choice.chosen().way, Way::kCopy);
  EXPECT_FALSE(candidate_of(choice, Way::kCpuAssisted).is_possible());
  EXPECT_EQ(choice.runner_up, static_cast<size_t>(Way::kReduceScatter));
}

TEST(Choice, MigModeLeavesCopies) {
  Machine machine = machine_file("hgx-8");
  machine.gpus[3].is_mig = true;
  const Choice choice = choice_for(machine);
  EXPECT_EQ(choice.chosen().way, Way::kCopy);
  EXPECT_EQ(choice.runner_up, std::nullopt);
  EXPECT_THAT(choice.chosen().why, HasSubstr("MIG"));
  EXPECT_THAT(candidate_of(choice, Way::kReduceScatter).impossible, HasSubstr("MIG mode"));
}

TEST(Choice, CubeMeshIsNoGroupOfAllGpus) {
  const Choice choice = choice_for(machine_file("cube-mesh-8"));
  EXPECT_EQ(choice.chosen().way, Way::kCpuAssisted);
  EXPECT_EQ(choice.candidates[choice.current].way, Way::kCopy) << "GPUs of different squares reach each other by PCIe";
}

TEST(Choice, NicPerGpuReadsGpuMemory) {
  const Choice choice = choice_for(machine_file("hgx-8"));
  EXPECT_EQ(choice.chosen().way, Way::kGpuDirect);
  EXPECT_EQ(choice.chosen().roots.size(), 8u);
  EXPECT_FALSE(candidate_of(choice, Way::kRoots).is_possible());
  const Candidate& sub_nodes = candidate_of(choice, Way::kSubNodes);
  ASSERT_TRUE(sub_nodes.is_possible());
  EXPECT_DOUBLE_EQ(link_of(sub_nodes, LinkKind::kNic, "mlx5_3").bytes, 2e9);
}

TEST(Choice, GpuDirectNeedsRdmaAtSwitch) {
  Machine machine = machine_file("nvlink-8");
  const auto direct = [&] { return candidate_of(choice_for(machine), Way::kGpuDirect); };
  EXPECT_TRUE(direct().is_possible());
  EXPECT_THAT(direct().roots, ElementsAre(0, 1));
  EXPECT_DOUBLE_EQ(link_of(direct(), LinkKind::kSwitch, "p0").bytes, 1e9) << "only the summer's traffic";
  machine.nics[0].is_rdma = false;
  EXPECT_FALSE(direct().is_possible());
  machine.nics[0].is_rdma = true;
  machine.nics[0].at = std::nullopt;
  EXPECT_FALSE(direct().is_possible());
}

TEST(Choice, GpuDirectWinsBehindSlowSwitch) {
  Machine machine = machine_file("nvlink-8");
  machine.nics[0].bandwidth = {400e9, false};
  machine.gpus[0].bandwidth = machine.gpus[1].bandwidth = {400e9, false};
  EXPECT_EQ(choice_for(machine).chosen().way, Way::kGpuDirect);
}

TEST(Choice, PairsAreSubNodes) {
  Machine machine = machine_file("nvlink-8");
  EXPECT_THAT(candidate_of(choice_for(machine), Way::kSubNodes).impossible, HasSubstr("gpu2"));
  for (uint32_t at = 1; at < 4; ++at) {
    Nic nic = machine.nics[0];
    nic.name = "more" + std::to_string(at);
    nic.at = at;
    machine.nics.push_back(nic);
  }
  const Candidate pairs = candidate_of(choice_for(machine), Way::kSubNodes);
  ASSERT_TRUE(pairs.is_possible()) << pairs.impossible;
  // In turn, a GPU of a pair is the root, which passes one gradient of its neighbour and two of the network, or not.
  EXPECT_DOUBLE_EQ(link_of(pairs, LinkKind::kGpu, "gpu7").bytes, (3 + 1) / 2.0 * 1e9);
  EXPECT_DOUBLE_EQ(link_of(pairs, LinkKind::kNic, "more3").bytes, 2e9);
  machine = machine_file("pcie-8-nic");
  machine.nics.push_back({.name = "other", .at = 1, .bandwidth = {100e9, false}, .is_rdma = true});
  EXPECT_THAT(candidate_of(choice_for(machine), Way::kSubNodes).impossible, HasSubstr("4 GPUs for 1 RDMA NIC"));
}

TEST(Choice, SymmetricNvlinkScatters) {
  Machine machine = machine_file("nvlink-8");
  machine.nics[0].at = std::nullopt;
  const Choice choice = choice_for(machine, {.network_share = 1});
  EXPECT_FALSE(candidate_of(choice, Way::kRoots).is_possible());
  EXPECT_EQ(choice.chosen().way, Way::kReduceScatter) << "rule 2 of §4.2.3";
}

TEST(Choice, EqualTimesGoToSimplerWay) {
  Machine machine = machine_file("nvlink-8");
  machine.nics[0].bandwidth = {1e9, false};  // so slow that nothing else counts
  const Choice choice = choice_for(machine);
  EXPECT_EQ(choice.chosen().way, Way::kCopy);
  EXPECT_EQ(choice.runner_up, static_cast<size_t>(Way::kRoots));
}

// The only worker of a job sends nothing.
TEST(Choice, NothingSentLeavesNicsOut) {
  for (const char* name : {"nvlink-8", "pcie-8", "pcie-8-nic", "hgx-8", "one-gpu", "cloud-vm"}) {
    const Choice choice = choice_for(machine_file(name), {.network_share = 0});
    for (const Candidate& candidate : choice.candidates) {
      if (!candidate.is_possible()) continue;
      ASSERT_LT(candidate.busiest, candidate.links.size()) << name << ": " << name_of(candidate.way);
      EXPECT_GT(candidate.seconds, 0) << name << ": " << name_of(candidate.way);
    }
  }
  const Choice choice = choice_for(machine_file("hgx-8"), {.network_share = 0});
  EXPECT_EQ(choice.chosen().way, Way::kReduceScatter);
  for (const Way way : {Way::kGpuDirect, Way::kSubNodes}) {
    EXPECT_THAT(candidate_of(choice, way).impossible, HasSubstr("sends nothing")) << name_of(way);
  }
}

TEST(Choice, RefusesStepsOutOfRange) {
  const auto message = [](const Step& step) {
    return std::string(choose(machine_file("hgx-8"), step).status().message());
  };
  EXPECT_THAT(message({.gradient_bytes = 0}), HasSubstr("a step has 0 bytes"));
  EXPECT_THAT(message({.network_share = -1}), HasSubstr("NICs carry -1 bytes"));
  EXPECT_THAT(message({.network_share = std::nan("")}), HasSubstr("NICs carry nan bytes"));
}

TEST(Choice, RefusesMachinesThatAreWrong) {
  const auto message = [](const Machine& machine) { return std::string(choose(machine).status().message()); };
  EXPECT_EQ(choose({}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(message({}), HasSubstr("no GPU"));
  Machine machine = machine_file("nvlink-8");
  machine.gpus[3].bandwidth = {};
  EXPECT_THAT(message(machine), HasSubstr("GPU 'gpu3': the bandwidth is 0; give bits per second above 0"));
  machine = machine_file("nvlink-8");
  machine.gpus[3].at = 4;
  EXPECT_THAT(message(machine), HasSubstr("at switch 4, but the machine has 4 switches"));
  machine = machine_file("nvlink-8");
  machine.nvlink[0].gpus.push_back(8);
  EXPECT_THAT(message(machine), HasSubstr("unknown GPU 8"));
  machine.nvlink[0].gpus.back() = 0;
  EXPECT_THAT(message(machine), HasSubstr("'gpu0' is twice"));
  machine = machine_file("nvlink-8");
  machine.nics[0].name = "gpu0";
  EXPECT_THAT(message(machine), HasSubstr("two devices have the name 'gpu0'"));
}

}  // namespace
}  // namespace gleaner::machine
