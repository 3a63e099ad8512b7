// A real API server for the tests of this program: tests/e2e/control-plane as a child, started once and shared.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class ApiServer {
 public:
  // Null when the programs for it are missing, or when it did not come up; `why` says what.
  static std::unique_ptr<ApiServer> start(std::string* why);
  ~ApiServer();  // takes all of it down

  // One of control-plane's commands; a failed one fails the test.
  void command(const std::string& text);

  const std::string& folder() const { return folder_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  Credentials admin() const { return admin_; }

 private:
  ApiServer() = default;
  std::string read_line(absl::Duration timeout);

  pid_t pid_ = 0;
  int to_child_ = -1;
  int from_child_ = -1;
  std::string unread_;
  std::string folder_;
  std::string kubeconfig_;
  Credentials admin_;
};

// Users of the shared server, beside the administrator.
constexpr char kAliceToken[] = "token-of-alice";  // may do nothing
constexpr char kBobToken[] = "token-of-bob";      // an administrator, too
constexpr char kCarolToken[] = "token-of-carol";  // the same

ApiServer* shared_server();   // null: there is none
std::string why_no_server();  // then
// Starts it once for all tests of a program. GoogleTest owns it.
testing::Environment* server_environment();

// True once `condition` holds; false: not within `timeout`.
bool eventually(const std::function<bool()>& condition, absl::Duration timeout = absl::Seconds(60));

// A test with a client of its own and a namespace of its own.
class ServerTest : public testing::Test {
 protected:
  void SetUp() override;

  ApiServer& server() { return *shared_server(); }
  const Env& env() const { return env_.env(); }
  Client& client() { return *client_; }
  std::unique_ptr<Client> client_as(const std::string& token);
  std::unique_ptr<Client> client_with(const Client::Options& options);
  // Pauses it, and returns when it really answers nobody any more: a signal takes a moment. To be resumed by a command.
  void freeze_server();
  // A ConfigMap in this test's namespace.
  Object config_map(const std::string& name, const std::string& value) const;

  std::string ns_;

 private:
  SystemEnv env_{{.component = "test", .level = LogLevel::kOff}};
  std::unique_ptr<Client> client_;
};

}  // namespace gleaner::kube
