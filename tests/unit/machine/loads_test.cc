// Tests of the bytes on each link, with the figures of BytePS §4.2.1 and §4.2.2.
#include "common/machine/loads.h"

#include <gmock/gmock.h>

#include "common/machine/cpu_assisted.h"
#include "tests/unit/machine/machine_files.h"

namespace gleaner::machine {
namespace {

constexpr double kGradient = 1e9;

TEST(Loads, CpuAssistedCarriesOneGradientToCpu) {
  const Choice choice = choice_for(machine_file("pcie-8"));
  const Candidate& assisted = candidate_of(choice, Way::kCpuAssisted);
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kSwitch, "p0").bytes, kGradient);
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kSwitch, "p1").bytes, kGradient);
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kGpu, "gpu5").bytes, 1.75 * kGradient) << "(2l-1)M/l";
}

TEST(Loads, RingCarriesMoreToCpu) {
  const Choice choice = choice_for(machine_file("pcie-8"));
  const Candidate& ring = candidate_of(choice, Way::kReduceScatter);
  // The collective's 7M/4, and copies of half of each switch's share of the sum.
  EXPECT_DOUBLE_EQ(link_of(ring, LinkKind::kSwitch, "p0").bytes, (1.75 + 0.5) * kGradient);
  EXPECT_DOUBLE_EQ(link_of(ring, LinkKind::kGpu, "gpu0").bytes, (1.75 + 0.125) * kGradient);
  EXPECT_DOUBLE_EQ(link_of(ring, LinkKind::kAcross, "").bytes, 1.75 * kGradient);
}

TEST(Loads, CopyCarriesEveryGradientToCpu) {
  const Choice choice = choice_for(machine_file("pcie-8"));
  const Candidate& copy = candidate_of(choice, Way::kCopy);
  EXPECT_DOUBLE_EQ(link_of(copy, LinkKind::kSwitch, "p0").bytes, 4 * kGradient) << "Eq. 8, x = 1";
  EXPECT_DOUBLE_EQ(link_of(copy, LinkKind::kGpu, "gpu0").bytes, kGradient) << "Eq. 9, x = 1";
  // 8 copies in and out, a sum that reads 8 and writes one, and 2 from and to the NIC.
  EXPECT_DOUBLE_EQ(link_of(copy, LinkKind::kMemory, "").bytes, (16 + 9 + 4) * kGradient);
}

TEST(Loads, MachineAgreesWithEquations) {
  const Machine machine = machine_file("pcie-8");
  for (const double share : {0.0, 0.1, 0.2, 0.6, 1.0}) {
    EXPECT_NEAR(cpu_assisted_seconds(machine, {.network_share = 1}, share),
                completion_seconds({4, 105e9, 105e9}, kGradient, share), 1e-12);
  }
}

TEST(Loads, NicLoadsItsSwitch) {
  const Choice choice = choice_for(machine_file("pcie-8-nic"));
  const Candidate& assisted = candidate_of(choice, Way::kCpuAssisted);
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kSwitch, "p0").bytes, (1 + 2) * kGradient);
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kSwitch, "p1").bytes, kGradient);
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kNic, "mlx5_0").bytes, 2 * kGradient);
}

TEST(Loads, RootsReceiveAndSendByNvlink) {
  const Machine machine = machine_file("nvlink-8");
  const Candidate one = with_roots(machine, {}, {2});
  EXPECT_DOUBLE_EQ(link_of(one, LinkKind::kNvlink, "gpu2").bytes, 7 * kGradient);
  EXPECT_DOUBLE_EQ(link_of(one, LinkKind::kNvlink, "gpu0").bytes, kGradient);
  EXPECT_DOUBLE_EQ(link_of(one, LinkKind::kSwitch, "p1").bytes, kGradient);
  const Candidate all = with_roots(machine, {}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_NEAR(link_of(all, LinkKind::kNvlink, "gpu4").bytes, 1.75 * kGradient, 1) << "2(N-1)M/N, as a ring";
}

TEST(Loads, DirectLinksToOtherGpusAreIdle) {
  const Candidate assisted = candidate_of(choice_for(machine_file("cube-mesh-8")), Way::kCpuAssisted);
  // The gradient's halves go to and fro on the link of two GPUs, a third of a GPU's bandwidth in its square.
  EXPECT_DOUBLE_EQ(link_of(assisted, LinkKind::kNvlink, "gpu0").bytes, 3 * kGradient);

  Machine square = machine_file("nvlink-8");
  square.nvlink = {{{0, 1, 2, 3, 4, 5, 6, 7}, {1.2e12, false}, true}};
  EXPECT_DOUBLE_EQ(link_of(with_roots(square, {}, {2, 3}), LinkKind::kNvlink, "gpu2").bytes, 7 * kGradient)
      << "the link between both roots carries the parts of both";
  const Candidate scattered = candidate_of(choice_for(square), Way::kReduceScatter);
  EXPECT_DOUBLE_EQ(link_of(scattered, LinkKind::kNvlink, "gpu2").bytes, 1.75 * kGradient) << "as with NVSwitches";
}

TEST(Loads, CopiesFromOtherNodeCrossInterconnect) {
  Machine machine = machine_file("pcie-8");
  const Choice free = choice_for(machine);
  EXPECT_DOUBLE_EQ(link_of(candidate_of(free, Way::kCpuAssisted), LinkKind::kInterconnect, "").bytes, kGradient);
  machine.interconnect = {10e9, false};
  const Candidate slow = candidate_of(choice_for(machine), Way::kCpuAssisted);
  EXPECT_EQ(slow.links[slow.busiest].kind, LinkKind::kInterconnect);
  EXPECT_DOUBLE_EQ(slow.seconds, 8 * kGradient / 10e9);
}

TEST(Loads, UnknownBandwidthDoesNotCount) {
  EXPECT_EQ((Link{.bytes = 1e9}).seconds(), 0);
  Machine machine = machine_file("pcie-8");
  machine.memory = {1e9, false};
  EXPECT_GT(choice_for(machine).chosen().seconds, choice_for(machine_file("pcie-8")).chosen().seconds);
}

}  // namespace
}  // namespace gleaner::machine
