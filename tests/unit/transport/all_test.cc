// Tests of all transports of this build together, as members use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/transport/factory/factory.h"
#include "tests/conformance/rig.h"

namespace gleaner::transport {
namespace {

using ::testing::HasSubstr;

class AllTest : public ::testing::Test {
 protected:
  AllTest() {
    std::filesystem::create_directory(real_);
    std::filesystem::create_directory_symlink(real_, alias_);
  }
  ~AllTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<any::Transport> make(const std::filesystem::path& directory, const char* preferences,
                                       Handler* handler) {
    auto made = make_transport(system_.env(), {parse_preferences(preferences).value(), directory, ""}, handler, &job_);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  void serve(const char* preferences = "auto") {
    server_ = make(real_, preferences, &server_end_);
    ASSERT_TRUE(server_->listen({"127.0.0.1", 0}).ok());
  }
  // Returns the transport by which the client, with this directory for sockets, reaches the server.
  std::string reached(const std::filesystem::path& directory) {
    client_ = make(directory, "auto", &client_end_);
    client_end_.connections.clear();
    EXPECT_TRUE(client_->connect("peer", server_->endpoints(), {kJob, 3, job_.secret}).ok());
    for (int i = 0; i < 10'000 && client_end_.connections.empty(); ++i) {
      client_->poll(absl::Milliseconds(1));
      server_->poll(absl::Milliseconds(1));
    }
    if (client_end_.connections.empty()) return "nothing";
    return std::string(name_of(client_end_.connections[0]->kind()));
  }

  const SystemEnv system_{LogOptions{"test", LogLevel::kError}};
  OneJob job_;
  char name_[32] = "/tmp/gleaner-all-XXXXXX";
  const std::filesystem::path folder_ = mkdtemp(name_);
  const std::filesystem::path real_ = folder_ / "real", alias_ = folder_ / "alias";
  End client_end_, server_end_;
  std::unique_ptr<any::Transport> server_, client_;
};

TEST_F(AllTest, OneMachineUsesSharedMemory) {
  serve();
  EXPECT_EQ(server_->endpoints()[0].kind, Kind::kShm);
  EXPECT_EQ(reached(real_), "shm");
}

TEST_F(AllTest, TheSameDirectoryMayHaveAnotherPath) {
  serve();
  std::filesystem::rename(folder_ / "real", folder_ / "moved");
  EXPECT_EQ(reached(folder_ / "moved"), "shm") << "the socket is found under another path";
}

TEST_F(AllTest, AnotherDirectoryCountsAsAnotherMachine) {
  serve();
  std::filesystem::create_directory(folder_ / "other");
  EXPECT_EQ(reached(folder_ / "other"), "tcp");
  EXPECT_EQ(client_->counters().fallbacks, any::Counters().fallbacks) << "no fallback was counted";
}

TEST_F(AllTest, ARemovedSocketIsAFallback) {
  serve();
  for (const auto& entry : std::filesystem::directory_iterator(real_)) std::filesystem::remove(entry);
  EXPECT_EQ(reached(alias_), "tcp");
  EXPECT_EQ(client_->counters().fallbacks[1][3][1], 1u) << "the fallback from shm to tcp has the reason connect";
}

TEST_F(AllTest, AMissingDirectoryDisablesSharedMemory) {
  serve();
  EXPECT_EQ(reached(folder_ / "gone"), "tcp");
  EXPECT_EQ(client_->counters().fallbacks[1][2][0] + client_->counters().fallbacks[1][3][0], 1u);
  const auto forced =
      make_transport(system_.env(), {parse_preferences("shm").value(), folder_ / "gone", ""}, &client_end_, &job_);
  EXPECT_THAT(std::string(forced.status().message()),
              ::testing::AllOf(HasSubstr("transport shm: "), HasSubstr("/gone"), HasSubstr("see GLEANER_SHM_DIR")));
}

}  // namespace
}  // namespace gleaner::transport
