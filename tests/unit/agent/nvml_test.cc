// Tests of loading NVIDIA's library at run time: absent, broken, and a fake one with the published layout.
#include "agent/discover/nvml.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "agent/discover/machine.h"
#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

TEST(Nvml, AbsentIsNotFound) {
  EXPECT_EQ(read_nvml_gpus("libgleaner-no-such-library.so.1").status().code(), absl::StatusCode::kNotFound);
}

TEST(Nvml, AnotherLibraryIsUnavailable) {
  EXPECT_EQ(read_nvml_gpus("libc.so.6").status().code(), absl::StatusCode::kUnavailable);
}

TEST(Nvml, WithoutADriverIsUnavailable) {
  setenv("GLEANER_FAKE_NVML", "broken", 1);
  const absl::Status status = read_nvml_gpus(FAKE_NVML).status();
  unsetenv("GLEANER_FAKE_NVML");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("Driver Not Loaded"));
}

TEST(Nvml, ReportsUuidModelMemoryAndPciAddress) {
  for (int i = 0; i < 2; ++i) {  // closes the library and opens it again
    const absl::StatusOr<std::vector<api::Gpu>> gpus = read_nvml_gpus(FAKE_NVML);
    ASSERT_TRUE(gpus.ok()) << gpus.status();
    ASSERT_EQ(gpus->size(), 2u);
    EXPECT_EQ((*gpus)[0].uuid, "GPU-fake-1");
    EXPECT_EQ((*gpus)[0].model, "Fake H100");
    EXPECT_EQ((*gpus)[0].pci_address, "0000:d9:00.0");
    EXPECT_EQ((*gpus)[0].memory_bytes, 85899345920u);
  }
}

TEST(Nvml, IsUsedOnAMachineWithGpus) {
  const MachineTree tree("hgx-h100");
  MachineSource source = tree.source();
  source.nvml_library = FAKE_NVML;
  const absl::StatusOr<Machine> machine = read_machine(source);
  ASSERT_TRUE(machine.ok());
  ASSERT_EQ(machine->gpus.size(), 2u) << "the driver shows two of the eight GPUs on the bus";
  EXPECT_EQ(machine->gpus[1].uuid, "GPU-fake-1") << "NVML and the bus are matched by PCI address";
  EXPECT_EQ(machine->gpus[1].numa_node, 1);
  EXPECT_EQ(machine->paths.size(), 2 * machine->nics.size());
  EXPECT_EQ(machine->without_nvml, "");

  source.nvml_library = "libgleaner-no-such-library.so.1";
  const absl::StatusOr<Machine> without = read_machine(source);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->gpus.size(), 8u);
  EXPECT_NE(without->without_nvml, "");
}

TEST(Nvml, IsNotUsedOnAMachineWithoutAGpu) {
  const MachineTree tree("cpu-bond");
  MachineSource source = tree.source();
  source.nvml_library = FAKE_NVML;
  const absl::StatusOr<Machine> machine = read_machine(source);
  ASSERT_TRUE(machine.ok());
  EXPECT_TRUE(machine->gpus.empty());
}

}  // namespace
}  // namespace gleaner::discover
