// Tests of NVLinks and MIG mode by a fake of NVML (fake_nvml.cc), functions of which fail.
#include "agent/discover/nvlinks.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "agent/discover/machine.h"
#include "agent/discover/nvml.h"
#include "tests/unit/agent/injected.h"
#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

constexpr double kLink = 25781 * 8e6;

// The links of a DGX-1 with eight V100.
constexpr char kCubeMesh[] =
    "gpus=8 links@0-1=1 links@0-2=1 links@0-3=2 links@0-4=2 links@1-2=2 links@1-3=1 links@1-5=2 links@2-3=2 "
    "links@2-6=1 links@3-7=1 links@4-5=1 links@4-6=1 links@4-7=2 links@5-6=2 links@5-7=1 links@6-7=2";

struct Joined {
  std::vector<api::Gpu> gpus;
  std::vector<api::Nvlink> nvlinks;
  std::vector<std::string> failures;
};

Joined read_with(const std::string& words, const char* library = FAKE_NVML) {
  const Injected injected(words.c_str());
  absl::StatusOr<NvmlGpus> read = read_nvml_gpus(library);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  Joined joined{std::move(read->list), {}, std::move(read->failures)};
  joined.nvlinks = join_by_nvlinks(read->nvlinks, joined.gpus);
  return joined;
}

api::Nvlink pair(int a, int b, uint32_t links) {
  return {{absl::StrCat("GPU-fake-", a + 1), absl::StrCat("GPU-fake-", b + 1)}, links, links * kLink};
}

TEST(Nvlinks, BridgeJoinsTwoGpus) {
  const Joined joined = read_with("links@0-1=4");
  EXPECT_THAT(joined.nvlinks, ElementsAre(pair(0, 1, 4)));
  EXPECT_EQ(joined.gpus[0].nvlink_bits_per_second, 4 * kLink);
  EXPECT_EQ(joined.gpus[0].nvlink_group, -1) << "no NVSwitch";
  EXPECT_THAT(joined.failures, IsEmpty());
}

TEST(Nvlinks, CubeMeshHasSixteenPairs) {
  const Joined joined = read_with(kCubeMesh);
  ASSERT_EQ(joined.nvlinks.size(), 16u);
  EXPECT_EQ(joined.nvlinks[2], pair(0, 3, 2));
  for (const api::Gpu& gpu : joined.gpus) EXPECT_EQ(gpu.nvlink_bits_per_second, 6 * kLink) << gpu.uuid;
}

TEST(Nvlinks, SwitchesJoinGpusThatHaveLinksToThem) {
  const Joined joined = read_with("gpus=3 switch-links@0=12 switch-links@2=12");
  EXPECT_THAT(joined.nvlinks, IsEmpty());
  ASSERT_EQ(joined.gpus.size(), 3u);
  for (const api::Gpu& gpu : joined.gpus) {
    const bool is_joined = gpu.uuid != "GPU-fake-2";
    EXPECT_EQ(gpu.nvlink_group, is_joined ? 0 : -1) << gpu.uuid;
    EXPECT_EQ(gpu.nvlink_bits_per_second, is_joined ? 12 * kLink : 0) << gpu.uuid;
  }
}

TEST(Nvlinks, AreUnknownWithoutNvml) {
  const Injected injected("links@0-1=4");
  const MachineTree tree("hgx-h100");
  MachineSource source = tree.source();
  source.nvml_library = FAKE_NVML;
  EXPECT_THAT(read_machine(source)->nvlinks, Optional(ElementsAre(pair(0, 1, 4))));
  source.nvml_library = "libgleaner-no-such-library.so.1";
  EXPECT_EQ(read_machine(source)->nvlinks, std::nullopt);
}

TEST(Nvlinks, OneEndTellsOfAPair) {
  for (const char* function : {"NvLinkCapability", "NvLinkState", "NvLinkRemotePciInfo_v2"}) {
    const Joined joined = read_with(absl::StrCat("links@0-1=4 ", function, "@1=999"));
    EXPECT_THAT(joined.nvlinks, ElementsAre(pair(0, 1, 4))) << function;
    EXPECT_THAT(joined.failures, ElementsAre(testing::EndsWith(" of an NVLink: Unknown Error"))) << function;
  }
}

TEST(Nvlinks, FailingFieldIsLeftOutAlone) {
  const auto failures = [](const std::string& words) {
    Joined joined = read_with("links@0-1=4 " + words);
    EXPECT_EQ(joined.gpus.size(), 2u) << words;
    return joined.failures;
  };
  EXPECT_THAT(failures("NvLinkCapability@0=999"), ElementsAre("GPU 0 has no capability of an NVLink: Unknown Error"));
  EXPECT_THAT(failures("NvLinkState@0=999"), ElementsAre("GPU 0 has no state of an NVLink: Unknown Error"));
  EXPECT_THAT(failures("NvLinkRemoteDeviceType@0=999"),
              ElementsAre("GPU 0 has no remote type of an NVLink: Unknown Error"));
  EXPECT_THAT(failures("NvLinkRemotePciInfo_v2@0=999"),
              ElementsAre("GPU 0 has no remote PCI address of an NVLink: Unknown Error"));
  EXPECT_THAT(failures("FieldValues@0=999"), ElementsAre("GPU 0 has no speed of NVLinks: Unknown Error"));
  EXPECT_THAT(failures("LinkSpeed@0=999"), ElementsAre("GPU 0 has no speed of NVLinks: Unknown Error"));
  EXPECT_THAT(failures("MigMode@0=999"), ElementsAre("GPU 0 has no MIG mode: Unknown Error"));
  EXPECT_THAT(failures("mig@0=2 MaxMigDeviceCount@0=999"),
              ElementsAre("GPU 0 has no number of MIG instances: Unknown Error"));
  EXPECT_THAT(failures("mig@0=2 MigDeviceHandleByIndex@0=999"),
              ElementsAre("GPU 0 has no number of MIG instances: Unknown Error"));
}

TEST(Nvlinks, UnsupportedFieldsAreNoFailures) {
  for (const char* function : {"NvLinkCapability", "NvLinkState", "NvLinkRemoteDeviceType", "NvLinkRemotePciInfo_v2",
                               "FieldValues", "LinkSpeed", "MigMode", "MaxMigDeviceCount", "MigDeviceHandleByIndex"}) {
    for (const int error : {3, 13}) {
      const Joined joined = read_with(absl::StrCat("links@0-1=4 mig@0=1 ", function, "@0=", error));
      EXPECT_THAT(joined.failures, IsEmpty()) << function << " " << error;
      EXPECT_EQ(joined.nvlinks.size(), 1u) << function;
    }
  }
}

TEST(Nvlinks, UnknownSpeedLeavesTheLinks) {
  const Joined joined = read_with("links@0-1=4 LinkSpeed@0=3 FieldValues@1=3");
  ASSERT_EQ(joined.nvlinks.size(), 1u);
  EXPECT_EQ(joined.nvlinks.front().links, 4u);
  EXPECT_EQ(joined.nvlinks.front().bits_per_second, 0);
  EXPECT_EQ(joined.gpus[0].nvlink_bits_per_second, 0);
}

TEST(Nvlinks, LostGpuIsLeftOutAlone) {
  for (const char* function : {"NvLinkCapability", "NvLinkState", "NvLinkRemoteDeviceType", "NvLinkRemotePciInfo_v2",
                               "FieldValues", "MigMode", "MaxMigDeviceCount", "MigDeviceHandleByIndex"}) {
    const Joined joined = read_with(absl::StrCat("links@0-1=4 mig@0=1 ", function, "@0=15"));
    EXPECT_EQ(joined.gpus.size(), 1u) << function;
    EXPECT_THAT(joined.nvlinks, IsEmpty()) << function;
    EXPECT_THAT(joined.failures, ElementsAre("GPU 0 is left out: GPU is lost")) << function;
  }
}

TEST(Nvlinks, OldLibraryTellsPairsByAddress) {
  const Joined joined = read_with("links@0-1=4 mig@0=2", FAKE_OLD_NVML);
  EXPECT_THAT(joined.nvlinks, ElementsAre(pair(0, 1, 4)));
  EXPECT_FALSE(joined.gpus[1].mig);
  EXPECT_EQ(joined.failures.size(), 2u) << "the memory sizes, which all libraries can tell";
}

TEST(Mig, ModeAndInstancesAreRead) {
  const Joined joined = read_with("mig@1=3");
  ASSERT_EQ(joined.gpus.size(), 2u);
  EXPECT_FALSE(joined.gpus[0].mig);
  EXPECT_TRUE(joined.gpus[1].mig);
  EXPECT_EQ(joined.gpus[1].mig_instances, 3u);
  EXPECT_THAT(joined.failures, IsEmpty());
}

}  // namespace
}  // namespace gleaner::discover
