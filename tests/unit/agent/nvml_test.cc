// Tests of loading NVIDIA's library at run time: absent, broken, and a fake one with the published layout, functions of
// which fail.
#include "agent/discover/nvml.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/discover/machine.h"
#include "tests/unit/agent/injected.h"
#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NvmlGpus read_with(const char* words, const char* library = FAKE_NVML) {
  const Injected injected(words);
  absl::StatusOr<NvmlGpus> gpus = read_nvml_gpus(library);
  EXPECT_TRUE(gpus.ok()) << gpus.status();
  return gpus.ok() ? *std::move(gpus) : NvmlGpus{};
}

TEST(Nvml, AbsentIsNotFound) {
  EXPECT_EQ(read_nvml_gpus("libgleaner-no-such-library.so.1").status().code(), absl::StatusCode::kNotFound);
}

TEST(Nvml, AnotherLibraryIsUnavailable) {
  EXPECT_EQ(read_nvml_gpus("libc.so.6").status().code(), absl::StatusCode::kUnavailable);
}

TEST(Nvml, WithoutADriverIsUnavailable) {
  const Injected no_driver("Init_v2=9");
  const absl::Status status = read_nvml_gpus(FAKE_NVML).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Driver Not Loaded"));
}

TEST(Nvml, ReportsUuidModelMemoryAndPciAddress) {
  for (int i = 0; i < 2; ++i) {  // closes the library and opens it again
    const absl::StatusOr<NvmlGpus> gpus = read_nvml_gpus(FAKE_NVML);
    ASSERT_TRUE(gpus.ok()) << gpus.status();
    ASSERT_EQ(gpus->list.size(), 2u);
    EXPECT_EQ(gpus->list[0].uuid, "GPU-fake-1");
    EXPECT_EQ(gpus->list[0].model, "Fake H100");
    EXPECT_EQ(gpus->list[0].pci_address, "0000:d9:00.0");
    EXPECT_EQ(gpus->list[0].memory_bytes, 85899345920u);
    EXPECT_THAT(gpus->failures, IsEmpty());
  }
}

TEST(Nvml, OneFailingFieldIsLeftOutAlone) {
  const api::Gpu whole = read_with("").list.at(1);
  const std::pair<const char*, std::string api::Gpu::*> fields[] = {
      {"UUID", &api::Gpu::uuid}, {"Name", &api::Gpu::model}, {"PciInfo_v3", &api::Gpu::pci_address}};
  for (const auto& [function, field] : fields) {
    const NvmlGpus gpus = read_with(absl::StrCat(function, "@1=999").c_str());
    ASSERT_EQ(gpus.list.size(), 2u) << function;
    api::Gpu expected = whole;
    (expected.*field).clear();
    EXPECT_EQ(gpus.list[1], expected) << function;
    EXPECT_THAT(gpus.failures, ElementsAre(AllOf(HasSubstr("GPU 1 has no "), HasSubstr("Unknown Error")))) << function;
  }
  const NvmlGpus without_memory = read_with("MemoryInfo@0=999");
  ASSERT_EQ(without_memory.list.size(), 2u);
  EXPECT_EQ(without_memory.list[0].memory_bytes, 0u);
  EXPECT_EQ(without_memory.list[1], whole);
  EXPECT_THAT(without_memory.failures, ElementsAre("GPU 0 has no memory size: Unknown Error"));
}

TEST(Nvml, LostGpuIsLeftOutAlone) {
  for (const char* function : {"HandleByIndex_v2", "UUID", "Name", "PciInfo_v3", "MemoryInfo"}) {
    const NvmlGpus gpus = read_with(absl::StrCat(function, "@0=15").c_str());
    ASSERT_EQ(gpus.list.size(), 1u) << function;
    EXPECT_EQ(gpus.list[0].uuid, "GPU-fake-2") << function;
    EXPECT_THAT(gpus.failures, ElementsAre("GPU 0 is left out: GPU is lost")) << function;
  }
}

TEST(Nvml, GpuWithoutIdentityIsLeftOut) {
  const NvmlGpus gpus = read_with("UUID@0=999 PciInfo_v3@0=999");
  ASSERT_EQ(gpus.list.size(), 1u);
  EXPECT_THAT(gpus.failures, ElementsAre("GPU 0 is left out: it has neither UUID nor PCI address"));
}

TEST(Nvml, UnsupportedFieldIsNoFailure) {
  const NvmlGpus gpus = read_with("MemoryInfo@0=3 MemoryInfo@1=3");
  ASSERT_EQ(gpus.list.size(), 2u);
  EXPECT_EQ(gpus.list[0].memory_bytes, 0u);
  EXPECT_THAT(gpus.failures, IsEmpty());
}

TEST(Nvml, OldLibraryLacksFieldsAlone) {
  const NvmlGpus gpus = read_with("", FAKE_OLD_NVML);
  ASSERT_EQ(gpus.list.size(), 2u);
  EXPECT_EQ(gpus.list[0].uuid, "GPU-fake-1");
  EXPECT_EQ(gpus.list[0].memory_bytes, 0u);
  EXPECT_THAT(gpus.failures, ElementsAre("GPU 0 has no memory size: error 13", "GPU 1 has no memory size: error 13"));
}

TEST(Nvml, BusAndDriverGiveFieldsThatNvmlDoesNot) {
  MachineTree tree("hgx-h100");
  tree.write("proc/driver/nvidia/gpus/0000:d9:00.0/information", "Model: \t NVIDIA H100\nGPU UUID: \t GPU-fake-1\n");
  MachineSource source = tree.source();
  source.nvml_library = FAKE_NVML;
  const absl::StatusOr<Machine> whole = read_machine(source);
  ASSERT_TRUE(whole.ok());
  for (const char* words : {"UUID@0=999", "PciInfo_v3@0=999"}) {
    const Injected injected(words);
    const absl::StatusOr<Machine> machine = read_machine(source);
    ASSERT_TRUE(machine.ok());
    EXPECT_EQ(machine->gpus, whole->gpus) << words;
    EXPECT_EQ(machine->paths, whole->paths) << words;
    EXPECT_EQ(machine->nvml_failures.size(), 1u) << words;
    EXPECT_EQ(machine->without_nvml, "") << words;
  }
  const Injected injected("Name@0=999");
  const absl::StatusOr<Machine> machine = read_machine(source);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->gpus[1].model, "NVIDIA H100");
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
