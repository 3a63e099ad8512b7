#include "common/machine/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/unit/machine/machine_files.h"

namespace gleaner::machine {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const absl::StatusOr<Machine> machine = parse_machine(text);
  return machine.ok() ? "" : std::string(machine.status().message());
}

TEST(MachineJson, SurvivesWriting) {
  for (const char* name : {"nvlink-8", "pcie-8", "pcie-8-nic", "one-gpu", "hgx-8", "cube-mesh-8", "cloud-vm"}) {
    Machine machine = machine_file(name);
    machine.gpus.front().is_mig = true;
    const absl::StatusOr<Machine> again = parse_machine(to_json(machine).dump());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, machine) << name;
  }
}

TEST(MachineJson, LeftOutBandwidthIsAssumed) {
  const Machine machine = machine_file("one-gpu");
  EXPECT_EQ(machine.gpus[0].bandwidth, (Bandwidth{kAssumedPcie, true}));
  EXPECT_EQ(machine.nics[0].bandwidth, (Bandwidth{kAssumedNic, true}));
  EXPECT_EQ(machine.across, (Bandwidth{kAssumedAcross, true}));
  EXPECT_FALSE(machine.memory.is_known());
  EXPECT_FALSE(machine_file("pcie-8").across.is_assumed);
  EXPECT_TRUE(machine_file("hgx-8").nvlink[0].bandwidth.is_assumed);
  EXPECT_FALSE(machine_file("hgx-8").nics[0].bandwidth.is_assumed);
}

TEST(MachineJson, DevicesHaveNodeOfTheirSwitch) {
  const Machine machine = machine_file("nvlink-8");
  EXPECT_EQ(machine.gpus[3].numa_node, 0);
  EXPECT_EQ(machine.gpus[4].numa_node, 1);
}

TEST(MachineJson, ErrorsSayWhatToDo) {
  EXPECT_THAT(error_of("{"), HasSubstr("malformed JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("the machine is a list; give an object with \"gpus\""));
  EXPECT_THAT(error_of("{}"), HasSubstr("has no field \"gpus\""));
  EXPECT_THAT(error_of(R"({"gpus": []})"), HasSubstr("no GPU"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a", "bandwith": 1}]})"), HasSubstr("GPU 0 has the unknown field"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a", "bandwidth": 0}]})"),
              HasSubstr("GPU 0: \"bandwidth\" is 0; give bits per second above 0"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a", "switch": "s"}]})"),
              HasSubstr("GPU 0: \"switch\" is 's', which is the name of no switch"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a"}], "nvlink": [{"gpus": ["a", "b"]}]})"),
              HasSubstr("NVLink group 0: \"gpus\" is 'b', which is the name of no GPU"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a"}], "nvlink": [{"gpus": ["a"]}]})"), HasSubstr("fewer than two GPUs"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a", "numa": -1}]})"), HasSubstr("give the number of a NUMA node"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a"}], "nics": [{"name": "n", "rdma": "yes"}]})"),
              HasSubstr("\"rdma\" is \"yes\"; give true or false"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a"}, {"name": "a"}]})"), HasSubstr("two devices have the name"));
  EXPECT_THAT(error_of(R"({"gpus": [{"name": "a"}], "memory": 5})"), HasSubstr("\"memory\" is 5; give an object"));
  EXPECT_THAT(
      error_of(R"({"switches": [{"name": "s", "numa": 1}], "gpus": [{"name": "a", "switch": "s", "numa": 0}]})"),
      HasSubstr("differs from that of its switch"));
  EXPECT_THAT(error_of(R"({"kind": "List", "items": []})"), HasSubstr("give one NodeProfile"));
  EXPECT_THAT(error_of(R"({"kind": "NodeProfile", "metadata": {"name": "n"}, "status": {"gpus": []}})"),
              HasSubstr("no GPU"));
}

}  // namespace
}  // namespace gleaner::machine
