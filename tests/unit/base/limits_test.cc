#include "common/base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/base/thread.h"
#include "tests/sanitizers.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(Limits, PidsOfAnOuterCgroup) {
  const Scratch root;
  write(root / "proc/self/cgroup", "0::/outer/inner\n");
  write(root / "sys/fs/cgroup/outer/inner/pids.max", "max\n");
  write(root / "sys/fs/cgroup/outer/inner/pids.current", "20\n");
  write(root / "sys/fs/cgroup/outer/pids.max", "20\n");
  write(root / "sys/fs/cgroup/outer/pids.current", "19\n");
  EXPECT_THAT(explain_limit(EAGAIN, root.path()),
              AllOf(HasSubstr("may have 20 processes and threads, and has 19"), HasSubstr("outer/pids.max")));
}

TEST(Limits, PidsOfCgroupsOfVersion1) {
  const Scratch root;
  write(root / "proc/self/cgroup", "7:memory:/\n5:pids:/job\n");
  write(root / "sys/fs/cgroup/pids/job/pids.max", "30\n");
  write(root / "sys/fs/cgroup/pids/job/pids.current", "30\n");
  EXPECT_THAT(explain_limit(EAGAIN, root.path()), HasSubstr("/sys/fs/cgroup/pids/job/pids.max"));
}

TEST(Limits, ACgroupWithRoomIsNotNamed) {
  const Scratch root;
  write(root / "proc/self/cgroup", "0::/\n");
  write(root / "sys/fs/cgroup/pids.max", "100\n");
  write(root / "sys/fs/cgroup/pids.current", "20\n");
  EXPECT_THAT(explain_limit(EAGAIN, root.path()), testing::Not(HasSubstr("pids.max")));
}

TEST(Limits, OtherErrorsHaveNoLimit) {
  EXPECT_EQ(explain_limit(ENOENT), "");
  EXPECT_EQ(exhausted("can't go", ENOENT), absl::UnavailableError("can't go: No such file or directory"));
}

TEST(Limits, DescriptorsAndDisk) {
  EXPECT_THAT(explain_limit(EMFILE), AllOf(HasSubstr("RLIMIT_NOFILE"), HasSubstr("ulimit -n")));
  EXPECT_THAT(explain_limit(ENOSPC), HasSubstr("/dev/shm"));
  EXPECT_TRUE(absl::IsResourceExhausted(exhausted("can't open", EMFILE)));
}

TEST(Limits, ErrorsOfLibrariesAreExplained) {
  EXPECT_THAT(std::string(with_limits(absl::UnknownError("ipv4:1.2.3.4:5: Too many open files")).message()),
              AllOf(HasSubstr("Too many open files: this process may open"), HasSubstr("RLIMIT_NOFILE")));
  const absl::Status other = absl::UnavailableError("Connection refused");
  EXPECT_EQ(with_limits(other), other);
}

// Runs in a child process, since it lowers a limit.
TEST(Limits, ThreadsWithoutAddressSpace) {
  const auto start_threads = [] {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    std::ifstream("/proc/self/statm") >> limit.rlim_cur;
    limit.rlim_cur = limit.rlim_cur * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (24 << 20);
    ::setrlimit(RLIMIT_AS, &limit);
    const absl::Status status = check_threads(64, "this test");
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    ::_exit(absl::IsResourceExhausted(status) ? 0 : 1);
  };
  EXPECT_EXIT(start_threads(), testing::ExitedWithCode(0),
              "this test needs 64 threads, and only .*RLIMIT_AS.*ulimit -v");
}

TEST(Limits, MemoryThatIsMissingIsNamed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the address space, and report its lack themselves";
  const auto allocate = [] {
    report_lack_of_memory("program");
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    std::ifstream("/proc/self/statm") >> limit.rlim_cur;
    limit.rlim_cur = limit.rlim_cur * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (24 << 20);
    ::setrlimit(RLIMIT_AS, &limit);
    const std::vector<char> much(64 << 20);
    ::_exit(much[0]);
  };
  EXPECT_EXIT(allocate(), testing::ExitedWithCode(1), "^program: out of memory: .*RLIMIT_AS.*ulimit -v");
}

TEST(Threads, AreCheckedWithoutALack) { EXPECT_EQ(check_threads(8, "this test"), absl::OkStatus()); }

}  // namespace
}  // namespace gleaner
