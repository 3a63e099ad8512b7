// Tests of reading the use counters of the machine and of pods, for both cgroup versions and both cgroup drivers.
#include "agent/discover/use.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/unit/agent/machine_tree.h"

namespace gleaner::discover {
namespace {

using testing::DoubleEq;
using testing::Optional;

constexpr char kUid[] = "0a1b2c3d-0000-1111-2222-333344445555";
constexpr char kUnderscored[] = "0a1b2c3d_0000_1111_2222_333344445555";

TEST(CpuSeconds, ReadsTheMachinesCgroup) {
  MachineTree v1;
  v1.write("sys/fs/cgroup/cpuacct/cpuacct.usage", "2500000000");
  EXPECT_THAT(read_cpu_seconds(v1.tree(), "/"), Optional(DoubleEq(2.5)));
  MachineTree combined;
  combined.write("sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "1500000000");
  EXPECT_THAT(read_cpu_seconds(combined.tree(), "/"), Optional(DoubleEq(1.5)));
  MachineTree v2;
  v2.write("sys/fs/cgroup/cgroup.controllers", "cpu memory");
  v2.write("sys/fs/cgroup/cpu.stat", "usage_usec 7000000\nuser_usec 1\nsystem_usec 2");
  EXPECT_THAT(read_cpu_seconds(v2.tree(), "/"), Optional(DoubleEq(7)));
}

TEST(CpuSeconds, ReadsACgroupRoot) {
  MachineTree tree;
  tree.write("sys/fs/cgroup/cpuacct/cpuacct.usage", "9000000000");
  tree.write("sys/fs/cgroup/cpuacct/nodes/n1/cpuacct.usage", "1000000000");
  EXPECT_THAT(read_cpu_seconds(tree.tree(), "/nodes/n1"), Optional(DoubleEq(1)));
}

TEST(CpuSeconds, WithoutCgroupsComeFromProcStat) {
  MachineTree tree;
  EXPECT_EQ(read_cpu_seconds(tree.tree(), "/"), std::nullopt);
  tree.write("proc/stat", "cpu  100 20 30 9999 888 4 5 77 66 55\ncpu0 1 2 3 4 5 6 7 8 9 10");
  // Without idle, waiting and stolen ticks. User ticks include those of guests.
  const double ticks = 100 + 20 + 30 + 4 + 5;
  EXPECT_THAT(read_cpu_seconds(tree.tree(), "/"),
              Optional(DoubleEq(ticks / static_cast<double>(sysconf(_SC_CLK_TCK)))));
}

TEST(CgroupRoot, IsTheParentOfTheKubeletsCgroups) {
  EXPECT_EQ(cgroup_root_of("9:name=systemd:/nodes/n1/kubepods/burstable/pod1/c\n0::/"), "/nodes/n1");
  EXPECT_EQ(cgroup_root_of("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/c"), "/");
  EXPECT_EQ(cgroup_root_of("0::/site.slice/kubelet-kubepods.slice/pod1"), "/site.slice");
  EXPECT_EQ(cgroup_root_of("0::/"), "/");
  EXPECT_EQ(cgroup_root_of("0::/../../kubepods/pod1"), "/") << "the path is incomplete in another cgroup namespace";
  EXPECT_EQ(cgroup_root_of(""), "/");
}

TEST(CpuPressure, IsSomeAvg10) {
  MachineTree tree;
  EXPECT_EQ(read_cpu_pressure(tree.tree()), std::nullopt);
  tree.write("proc/pressure/cpu",
             "some avg10=12.50 avg60=1.00 avg300=2.00 total=5\nfull avg10=3.00 avg60=0 avg300=0 total=0");
  EXPECT_THAT(read_cpu_pressure(tree.tree()), Optional(DoubleEq(12.5)));
}

TEST(AvailableMemory, IsTheKernelsEstimate) {
  MachineTree tree;
  tree.write("proc/meminfo", "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:   1500 kB");
  EXPECT_THAT(read_available_memory(tree.tree()), Optional(DoubleEq(1500 * 1024)));
}

void add_process(MachineTree& tree, const std::string& pid, const std::string& cgroup, double received, double sent) {
  tree.write("proc/" + pid + "/cgroup", cgroup);
  tree.write("proc/" + pid + "/net/dev",
             absl::StrCat("Inter-|   Receive                            |  Transmit\n",
                          " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n",
                          "    lo: 777 1 0 0 0 0 0 0 777 1 0 0 0 0 0 0\n", "  eth0:", received, " 5 0 0 0 0 0 0 ", sent,
                          " 9 0 0 0 0 0 0"));
}

TEST(PodFinder, FindsPodsOfBothCgroupDrivers) {
  struct Case {
    const char *version, *folder;
  };
  for (const Case& c : {Case{"2", "kubepods/burstable/podUID"}, Case{"2", "kubepods/podUID"},
                        Case{"2", "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_ID.slice"},
                        Case{"2",
                             "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                             "kubelet-kubepods-burstable-podU_ID.slice"},
                        Case{"1", "kubepods/besteffort/podUID"}}) {
    MachineTree tree;
    const std::string folder = absl::StrReplaceAll(c.folder, {{"UID", kUid}, {"U_ID", kUnderscored}});
    if (c.version[0] == '2') {
      tree.write("sys/fs/cgroup/cgroup.controllers", "cpu memory");
      tree.write("sys/fs/cgroup/" + folder + "/cpu.stat", "usage_usec 3000000");
      tree.write("sys/fs/cgroup/" + folder + "/memory.current", "4096");
    } else {
      tree.write("sys/fs/cgroup/cpuacct/" + folder + "/cpuacct.usage", "3000000000");
      tree.write("sys/fs/cgroup/memory/" + folder + "/memory.usage_in_bytes", "4096");
    }
    add_process(tree, "41", "0::/system.slice/sshd.service", 1, 1);
    add_process(tree, "42", "0::/../" + folder + "/cri-1234", 1000, 2000);
    PodFinder finder(tree.tree(), "/");
    const std::vector<PodUse> uses = finder.read({kUid}, {true});
    ASSERT_EQ(uses.size(), 1u);
    EXPECT_THAT(uses[0].cpu_seconds, Optional(DoubleEq(3))) << c.folder;
    EXPECT_EQ(uses[0].memory_bytes, 4096) << c.folder;
    ASSERT_TRUE(uses[0].traffic.has_value()) << c.folder;
    EXPECT_EQ(uses[0].traffic->received_bytes, 1000) << "without lo";
    EXPECT_EQ(uses[0].traffic->sent_bytes, 2000);
  }
}

TEST(PodFinder, AMissingPodHasUnknownUse) {
  MachineTree tree;
  PodFinder finder(tree.tree(), "/");
  const std::vector<PodUse> uses = finder.read({kUid}, {true});
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].cpu_seconds, std::nullopt);
  EXPECT_FALSE(uses[0].traffic.has_value());
}

TEST(PodFinder, FollowsAPodThroughItsRestarts) {
  MachineTree tree;
  const std::string cgroup = absl::StrCat("0::/kubepods/pod", kUid, "/c");
  add_process(tree, "42", cgroup, 1, 1);
  PodFinder finder(tree.tree(), "/");
  EXPECT_EQ(finder.read({kUid}, {true})[0].traffic->sent_bytes, 1);
  tree.remove("proc/42");
  add_process(tree, "42", "0::/user.slice", 99, 99);  // another process has got this number
  EXPECT_FALSE(finder.read({kUid}, {true})[0].traffic.has_value());
  add_process(tree, "50", cgroup, 5, 6);
  EXPECT_EQ(finder.read({kUid}, {true})[0].traffic->sent_bytes, 6);
}

TEST(PodFinder, APodInTheHostsNetworkHasNoTrafficOfItsOwn) {
  MachineTree tree;
  add_process(tree, "42", absl::StrCat("0::/kubepods/pod", kUid), 1, 1);
  PodFinder finder(tree.tree(), "/");
  EXPECT_FALSE(finder.read({kUid}, {false})[0].traffic.has_value());
}

TEST(PodFinder, ReadsACgroupRoot) {
  MachineTree tree;
  tree.write(absl::StrCat("sys/fs/cgroup/cpuacct/nodes/n1/kubepods/pod", kUid, "/cpuacct.usage"), "1000000000");
  PodFinder finder(tree.tree(), "/nodes/n1");
  EXPECT_THAT(finder.read({kUid}, {true})[0].cpu_seconds, Optional(DoubleEq(1)));
}

}  // namespace
}  // namespace gleaner::discover
