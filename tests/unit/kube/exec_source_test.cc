// Tests the credentials of commands with real commands: shell scripts that count their runs.
#include "common/kube/exec_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/manual_clock.h"
#include "tests/unit/kube/exec_version.h"

namespace gleaner::kube {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ExecSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/execXXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Returns a command that prints a credential whose token is "tN" in the Nth run, until the file `broken` exists.
  ExecCommand counter(absl::Time expiry) const {
    const std::string stamp = absl::FormatTime(absl::RFC3339_sec, expiry, absl::UTCTimeZone());
    return shell(absl::StrCat("cd ", folder_, "\n[ ! -e broken ] || exit 3\necho run >>runs\n",
                              R"(printf '{"kind":"ExecCredential","apiVersion":"%s","status":{"token":"t%s",)",
                              R"("expirationTimestamp":"%s"}}' )", kExecVersion, " $(wc -l <runs) ", stamp));
  }
  ExecCommand shell(const std::string& script) const {
    return {.api_version = kExecVersion, .arguments = {"sh", "-c", script}, .input = ExecInput::kNever};
  }
  std::string contents(const std::string& name) const {
    std::ifstream file(absl::StrCat(folder_, "/", name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  absl::Status failure(ExecCommand command) const { return ExecSource(clock_, std::move(command)).get().status(); }
  static std::string token_of(ExecSource& source) {
    const auto credential = source.get();
    return credential.ok() ? (*credential)->token : credential.status().ToString();
  }

  ManualClock clock_;
  std::string folder_;
};

TEST_F(ExecSourceTest, RunsAgainShortlyBeforeTheExpiry) {
  ExecSource source(clock_, counter(clock_.now() + absl::Hours(1)));
  EXPECT_EQ(token_of(source), "t1");
  clock_.advance(absl::Minutes(59));
  EXPECT_EQ(token_of(source), "t1");
  clock_.advance(absl::Seconds(31));
  EXPECT_EQ(token_of(source), "t2");
}

TEST_F(ExecSourceTest, KeepsAValidCredentialWhileTheCommandFails) {
  ExecSource source(clock_, counter(clock_.now() + absl::Hours(1)));
  EXPECT_EQ(token_of(source), "t1");
  std::ofstream(absl::StrCat(folder_, "/broken")) << "";
  clock_.advance(absl::Minutes(59) + absl::Seconds(45));
  EXPECT_EQ(token_of(source), "t1");
  clock_.advance(absl::Seconds(15));
  EXPECT_THAT(token_of(source), HasSubstr("'sh' exited with status 3"));
}

TEST_F(ExecSourceTest, RunsOnceAgainForARefusedCredential) {
  ExecSource source(clock_, counter(absl::FromUnixSeconds(1 << 30)));
  const auto first = source.get();
  ASSERT_TRUE(first.ok()) << first.status();
  source.drop(*first);
  EXPECT_EQ(token_of(source), "t2");
  source.drop(*first);
  EXPECT_EQ(token_of(source), "t2") << "the refused credential was replaced already";
}

TEST_F(ExecSourceTest, RunsOnceForManyThreads) {
  ExecSource source(clock_, counter(absl::FromUnixSeconds(1 << 30)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&source] { EXPECT_EQ(token_of(source), "t1"); });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ExecSourceTest, PassesVariablesArgumentsAndInfo) {
  ExecCommand command = shell(absl::StrCat("cd ", folder_, R"(
echo "$PROFILE $HOME $1" >seen; echo "$KUBERNETES_EXEC_INFO" >info; cat >input
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t"}}')"));
  command.arguments.insert(command.arguments.end(), {"sh", "an argument"});
  command.variables = {{"PROFILE", "lab"}, {"HOME", "/elsewhere"}};
  command.cluster = {{"server", "https://lab"}};
  ExecSource source(clock_, command);
  EXPECT_EQ(token_of(source), "t");
  EXPECT_EQ(contents("seen"), "lab /elsewhere an argument\n") << "variables replace those of this process";
  EXPECT_EQ(contents("info"), exec_info(command, false) + "\n");
  EXPECT_EQ(contents("input"), "") << "standard input is not for a command that never asks";
}

TEST_F(ExecSourceTest, MissingCommandsAreErrorsWithTheHint) {
  ExecCommand missing{
      .api_version = kExecVersion, .arguments = {"gleaner-no-such-command"}, .install_hint = "apt install it"};
  const absl::Status status = failure(missing);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("'gleaner-no-such-command': No such file"), HasSubstr("apt install it")));
  missing.arguments = {folder_};
  EXPECT_THAT(failure(missing).message(), AllOf(HasSubstr("Permission denied"), Not(HasSubstr("apt"))));
}

TEST_F(ExecSourceTest, FailuresNameTheCommand) {
  EXPECT_THAT(failure(shell("exit 7")).message(), HasSubstr("'sh' exited with status 7"));
  EXPECT_THAT(failure(shell("kill -9 $$")).message(), HasSubstr("'sh' was killed by signal 9"));
  EXPECT_THAT(failure(shell("echo secret")).message(),
              AllOf(HasSubstr("the output of 'sh'"), Not(HasSubstr("secret"))));
  EXPECT_THAT(failure(shell("yes | head -c 2000000")).message(), HasSubstr("printed too much"));
}

}  // namespace
}  // namespace gleaner::kube
