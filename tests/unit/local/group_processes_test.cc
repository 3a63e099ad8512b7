// Tests with real processes: sums are right, a death is always noticed, and no memory or descriptor is left behind.
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/sanitizers.h"
#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kElements = 1 << 20;
const std::vector<local::TensorShape> kShapes = {{kElements, DataType::kInt32}, {7, DataType::kInt32}};

// Runs `body` in a child process. The result of `body` is the child's exit status.
template <typename Body>
pid_t in_child(const Body& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  _exit(body());
}

int exit_status_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::unique_ptr<TestRank> open_rank(uint32_t rank, uint32_t size, const std::array<uint8_t, 32>& secret) {
  local::Options options = options_of(rank, size);
  options.secret = secret;
  return std::make_unique<TestRank>(options);
}

MutableBytes bytes_of(std::vector<int32_t>& data) { return std::as_writable_bytes(std::span(data)); }

size_t open_files() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

bool mentions_gleaner(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.find("gleaner-local") != std::string::npos;
}

bool shares_files() {
  bool found = false;
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return false;
  // Ignores folders, which belong to clusters of other tests, and sockets, which belong to jobs.
  while (const dirent* entry = readdir(folder)) {
    found |= entry->d_type == DT_REG && strstr(entry->d_name, "gleaner") != nullptr;
  }
  closedir(folder);
  return found;
}

// Runs several steps. Returns 0 if all sums are right.
int train(uint32_t rank, uint32_t size, const std::array<uint8_t, 32>& secret) {
  const auto self = open_rank(rank, size, secret);
  if (!self->group->register_tensors(kShapes).ok()) return 2;
  for (int32_t step = 0; step < 5; ++step) {
    std::vector<int32_t> large(kElements, static_cast<int32_t>(rank) + step);
    std::vector<int32_t> small(7, static_cast<int32_t>(rank) - step);
    if (!self->group
             ->start(rank % 2, ReduceOp::kSum, bytes_of(rank % 2 == 0 ? large : small),
                     bytes_of(rank % 2 == 0 ? large : small))
             .ok() ||
        !self->group
             ->start(1 - rank % 2, ReduceOp::kSum, bytes_of(rank % 2 == 0 ? small : large),
                     bytes_of(rank % 2 == 0 ? small : large))
             .ok()) {
      return 3;
    }
    while (self->done_count < 2 * (static_cast<size_t>(step) + 1)) {
      if (self->failed) return 4;
      self->turn(10000);
    }
    const auto ranks = static_cast<int32_t>(size);
    const int32_t sum = ranks * (ranks - 1) / 2;
    if (large != std::vector<int32_t>(kElements, sum + ranks * step)) return 5;
    if (small != std::vector<int32_t>(7, sum - ranks * step)) return 6;
  }
  while (!self->group->idle()) self->turn(10000);
  return 0;
}

TEST(GroupProcesses, SumAndLeaveWithoutErrors) {
  const auto secret = fresh_secret();
  std::vector<pid_t> children;
  for (uint32_t rank = 1; rank < 4; ++rank) {
    children.push_back(in_child([&] { return train(rank, 4, secret); }));
  }
  EXPECT_EQ(train(0, 4, secret), 0);
  for (const pid_t child : children) EXPECT_EQ(exit_status_of(child), 0);
  EXPECT_FALSE(shares_files());
}

struct Death {
  uint32_t rank;
  int turns;  // polls after it has started its push_pulls
};

class GroupDeath : public ::testing::TestWithParam<Death> {};

// One of three ranks is killed during a push_pull of 4 MiB. The other two run in this process.
TEST_P(GroupDeath, IsReportedToAllOtherRanks) {
  const auto [victim, turns] = GetParam();
  const auto secret = fresh_secret();
  const pid_t child = in_child([&, rank = victim, turns = turns] {
    const auto self = open_rank(rank, 3, secret);
    while (!self->connected) self->turn(10000);
    if (!self->group->register_tensors(kShapes).ok()) return 2;
    std::vector<int32_t> data(kElements, 1);
    if (!self->group->start(0, ReduceOp::kSum, bytes_of(data), bytes_of(data)).ok()) return 3;
    for (int i = 0; i < turns; ++i) self->turn(1);
    return raise(SIGKILL);
  });
  std::vector<std::unique_ptr<TestRank>> survivors;
  std::vector<std::vector<int32_t>> data;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    survivors.push_back(open_rank(rank, 3, secret));
    data.emplace_back(kElements, 1);
    ASSERT_TRUE(survivors.back()->group->register_tensors(kShapes).ok());
    ASSERT_TRUE(survivors.back()->group->start(0, ReduceOp::kSum, bytes_of(data.back()), bytes_of(data.back())).ok());
  }
  while (!(survivors[0]->failed && survivors[1]->failed)) {
    for (auto& survivor : survivors) survivor->turn(1);
  }
  EXPECT_EQ(exit_status_of(child), 128 + SIGKILL);
  for (const auto& survivor : survivors) {
    ASSERT_TRUE(survivor->failed);
    EXPECT_TRUE(absl::IsUnavailable(*survivor->failed));
    EXPECT_THAT(std::string(survivor->failed->message()),
                AllOf(HasSubstr("local rank " + std::to_string(victim) + " of worker 2"), HasSubstr("is lost")));
  }
  survivors.clear();
  EXPECT_FALSE(shares_files());
  EXPECT_FALSE(mentions_gleaner("/proc/self/maps"));
}

INSTANTIATE_TEST_SUITE_P(AtAnyTurn, GroupDeath,
                         ::testing::Values(Death{2, 0}, Death{2, 1}, Death{2, 3}, Death{2, 6}, Death{2, 9},
                                           Death{2, 12}, Death{2, 40}, Death{0, 0}, Death{0, 1}, Death{0, 3},
                                           Death{0, 6}, Death{0, 9}, Death{0, 12}, Death{0, 40}),
                         [](const auto& example) {
                           return "rank_" + std::to_string(example.param.rank) + "_turn_" +
                                  std::to_string(example.param.turns);
                         });

// A data loader that the training process has forked holds its sockets open. The death must be noticed nevertheless.
TEST(GroupProcesses, ADeathIsNoticedWhileChildrenOfTheProcessLive) {
  for (const uint32_t victim : {0u, 1u}) {
    const auto secret = fresh_secret();
    int until_closed[2];
    ASSERT_EQ(pipe(until_closed), 0);
    const pid_t child = in_child([&] {
      close(until_closed[1]);
      const auto self = open_rank(victim, 2, secret);
      while (!self->connected) self->turn(10000);
      if (fork() == 0) {
        char byte = 0;
        _exit(static_cast<int>(read(until_closed[0], &byte, 1)));
      }
      return raise(SIGKILL);
    });
    const auto survivor = open_rank(1 - victim, 2, secret);
    while (!survivor->failed) survivor->turn(1);
    ASSERT_TRUE(survivor->failed);
    EXPECT_THAT(std::string(survivor->failed->message()), HasSubstr("is lost"));
    EXPECT_EQ(exit_status_of(child), 128 + SIGKILL);
    close(until_closed[0]);
    close(until_closed[1]);
  }
}

TEST(GroupProcesses, NothingIsLeftOpen) {
  fresh_secret();  // opens descriptors that stay open
  const size_t before = open_files();
  for (int round = 0; round < 6; ++round) {
    Ranks ranks(3);
    if (round == 5) ranks.turn();  // the ranks are not all connected
    if (round < 5) {
      ASSERT_TRUE(ranks.connect());
      ranks.register_tensors(kShapes);
      ranks.register_tensors(kShapes);
      std::vector<int32_t> data(7, 1);
      ASSERT_TRUE(ranks[1].group->start(1, ReduceOp::kSum, bytes_of(data), bytes_of(data)).ok());
      for (int i = 0; i < round * 3; ++i) ranks.turn();
      if (round == 3) ranks[2].group->fail(absl::AbortedError("enough"));
      ranks.turn();
    }
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_FALSE(mentions_gleaner("/proc/self/maps"));
}

// Sets the limit `resource` to `value` while the object lives.
class Limit {
 public:
  Limit(int resource, rlim_t value) : resource_(resource) {
    EXPECT_EQ(getrlimit(static_cast<__rlimit_resource>(resource), &before_), 0);
    const rlimit now{value, before_.rlim_max};
    EXPECT_EQ(setrlimit(static_cast<__rlimit_resource>(resource), &now), 0);
  }
  ~Limit() { setrlimit(static_cast<__rlimit_resource>(resource_), &before_); }

 private:
  const int resource_;
  rlimit before_{};
};

TEST(GroupProcesses, LackOfDescriptorsIsAStatus) {
  Ranks ranks(2);
  ASSERT_TRUE(ranks.connect());
  const Limit limit(RLIMIT_NOFILE, 3);
  const absl::Status status = ranks[0].group->register_tensors(kShapes);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  ASSERT_TRUE(ranks.until([&] { return ranks[1].failed.has_value(); }));
  EXPECT_TRUE(absl::IsResourceExhausted(*ranks[1].failed));
  EXPECT_THAT(std::string(ranks[1].failed->message()), HasSubstr("local rank 0 of worker 2"));
}

TEST(GroupProcesses, LackOfAddressSpaceIsAStatus) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the address space";
  Ranks ranks(2);
  ASSERT_TRUE(ranks.connect());
  const Limit limit(RLIMIT_AS, 1 << 30);
  const absl::Status status =
      ranks[0].group->register_tensors(std::vector<local::TensorShape>{{1 << 28, DataType::kFloat32}});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("3.00 GiB"));
  ASSERT_TRUE(ranks.until([&] { return ranks[1].failed.has_value(); }));
}

}  // namespace
}  // namespace gleaner::testing
