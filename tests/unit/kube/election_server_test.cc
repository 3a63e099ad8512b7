// Tests of leader election on a real Lease: one leader at a time, takeover from a frozen leader, release.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/kube/leader.h"
#include "common/kube/object.h"
#include "tests/unit/kube/api_server.h"
#include "tests/unit/kube/elector.h"

extern char** environ;

namespace gleaner::kube {
namespace {

class ElectionTest : public ServerTest {
 protected:
  LeaderElection::Options options(const std::string& identity, std::atomic<int>* lost = nullptr) const {
    LeaderElection::Options options = quick_election(ns_, identity);
    if (lost != nullptr) options.on_lost = [lost] { ++*lost; };
    return options;
  }
  std::string holder() { return field("holderIdentity"); }
  std::string renewal() { return field("renewTime"); }

 private:
  std::string field(const char* name) {
    const auto lease = client().get(leases(), ns_, "leader");
    return lease.ok() ? text_at(*lease, {"spec", name}) : lease.status().ToString();
  }
};

TEST_F(ElectionTest, OneCandidateLeadsAndItsReleaseHandsOverAtOnce) {
  std::atomic<int> lost = 0;
  const auto patient = [&](const std::string& identity) {
    LeaderElection::Options lasting = options(identity, &lost);
    lasting.lease_duration = absl::Hours(1);  // far longer than eventually() waits
    lasting.renew_deadline = absl::Minutes(30);
    return lasting;
  };
  auto first = LeaderElection::start(env(), client(), patient("first"));
  ASSERT_TRUE(eventually([&] { return first->is_leader(); }));
  EXPECT_EQ(holder(), "first");
  auto second = LeaderElection::start(env(), client(), patient("second"));
  const std::string renewed = renewal();
  EXPECT_TRUE(eventually([&] { return renewal() != renewed; })) << "the leader renews the lease";
  EXPECT_TRUE(first->is_leader());
  EXPECT_FALSE(second->is_leader());
  first->release();
  EXPECT_FALSE(first->is_leader());
  EXPECT_TRUE(eventually([&] { return second->is_leader(); })) << "the successor does not wait for the lease to expire";
  first->release();
  first.reset();
  EXPECT_EQ(holder(), "second") << "a second release should not take the lease from others";
  EXPECT_EQ(lost, 0) << "a release does not count as a loss";
  second.reset();
  EXPECT_EQ(holder(), "");
}

TEST_F(ElectionTest, ALeaderThatCannotRenewGivesUpBeforeAnotherTakesOver) {
  TokenFile token(ns_, kBobToken);
  const auto first_client = client_with({.credentials = token.credentials(server().admin())});
  std::atomic<int> lost = 0;
  auto first = LeaderElection::start(env(), *first_client, options("first", &lost));
  ASSERT_TRUE(eventually([&] { return first->is_leader(); }));
  auto second = LeaderElection::start(env(), client(), options("second"));
  token.write("refused");
  bool both = false;
  EXPECT_TRUE(eventually([&] {
    const bool second_leads = second->is_leader();
    both = both || (second_leads && first->is_leader());
    return second_leads;
  }));
  EXPECT_FALSE(both);
  EXPECT_EQ(lost, 1);
  token.write(kBobToken);
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_FALSE(first->is_leader()) << "a lost lease stays lost";
  EXPECT_TRUE(second->is_leader());
}

// A candidate in a separate process (elector.h), since only a process can be frozen.
class ElectorProcess {
 public:
  ElectorProcess(const std::string& kubeconfig, const std::string& ns) {
    std::array<int, 2> out{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t files{};
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    std::array<std::string, 4> words = {"/proc/self/exe", kElectorMode, kubeconfig, ns};
    std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    posix_spawn(&pid_, words[0].c_str(), &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    output_ = out[0];
    fcntl(output_, F_SETFL, O_NONBLOCK);
  }
  ~ElectorProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
  }
  bool has_said(absl::string_view word) {
    std::array<char, 256> bytes{};
    const ssize_t size = read(output_, bytes.data(), bytes.size());
    if (size > 0) said_.append(bytes.data(), static_cast<size_t>(size));
    return absl::StrContains(said_, word);
  }
  void signal(int number) const { kill(pid_, number); }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  std::string said_;
};

TEST_F(ElectionTest, AFrozenHolderIsReplacedAndNoticesThatWhenItContinues) {
  ElectorProcess frozen(server().kubeconfig(), ns_);
  ASSERT_TRUE(eventually([&] { return frozen.has_said("leading"); }));
  auto second = LeaderElection::start(env(), client(), options("second"));
  absl::SleepFor(absl::Milliseconds(500));
  ASSERT_FALSE(second->is_leader());
  frozen.signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return second->is_leader(); }));
  frozen.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return frozen.has_said("lost"); }));
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_TRUE(second->is_leader());
  EXPECT_EQ(holder(), "second");
  EXPECT_FALSE(frozen.has_said("wrong")) << "the candidate believed to be the leader after it continued";
}

}  // namespace
}  // namespace gleaner::kube
