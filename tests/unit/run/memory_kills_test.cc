#include "cli/launcher/memory_kills.h"

#include <gtest/gtest.h>

#include "tests/unit/run/program.h"

namespace gleaner::launcher {
namespace {

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(MemoryKills, ReadsTheCountersOfBothCgroupVersionsAndOfTheMachine) {
  const Scratch root;
  EXPECT_EQ(memory_kills(root.path()), std::nullopt);
  put(root / "proc/vmstat", "nr_free_pages 12\noom_kill 5\n");
  EXPECT_EQ(memory_kills(root.path()), 5u);
  put(root / "proc/self/cgroup", "8:memory:/jobs/a\n3:cpu,cpuacct:/jobs/a\n");
  EXPECT_EQ(memory_kills(root.path()), 5u) << "the cgroup cannot be read";
  put(root / "sys/fs/cgroup/memory/jobs/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(memory_kills(root.path()), 2u);
  put(root / "proc/self/cgroup", "0::/jobs/b\n");
  put(root / "sys/fs/cgroup/jobs/b/memory.events", "low 0\noom 4\noom_kill 3\n");
  EXPECT_EQ(memory_kills(root.path()), 3u);
}

}  // namespace
}  // namespace gleaner::launcher
