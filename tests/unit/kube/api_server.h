// ApiServer: a real Kubernetes API server for tests. It runs tests/e2e/control-plane as a child process, which is
// started once and shared by all tests of a program.
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
  // Returns null if its programs are missing or it did not start; `why` then gets the reason.
  static std::unique_ptr<ApiServer> start(std::string* why);
  ~ApiServer();  // ends all of its processes

  // Runs a command of control-plane. If the command fails, the test fails.
  void command(const std::string& text);

  // Runs kubectl as the administrator, with `input` on its standard input. If it fails, the test fails.
  void kubectl(const std::string& arguments, const std::string& input = "") const;
  // Creates Gleaner's custom resources in the server.
  void install_crds() const;

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
constexpr char kAliceToken[] = "token-of-alice";  // has no permissions
constexpr char kBobToken[] = "token-of-bob";      // has the permissions of the administrator
constexpr char kCarolToken[] = "token-of-carol";  // has the permissions of the administrator

ApiServer* shared_server();  // null: there is no server, and why_no_server() has the reason
std::string why_no_server();
// Returns an environment that starts the shared server once for all tests of a program. GoogleTest owns it.
testing::Environment* server_environment();

// A file with a bearer token, which a test rewrites while clients use it. The destructor removes the file.
class TokenFile {
 public:
  TokenFile(const std::string& name, const std::string& token);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  void write(const std::string& token);
  // Returns `credentials` with this file in place of their token.
  Credentials credentials(Credentials credentials) const;

 private:
  const std::string path_;
};

// Waits until `condition` returns true, for `timeout` at most. Returns whether it did.
bool eventually(const std::function<bool()>& condition, absl::Duration timeout = absl::Seconds(60));

// A test with its own client and its own namespace.
class ServerTest : public testing::Test {
 protected:
  void SetUp() override;

  ApiServer& server() { return *shared_server(); }
  const Env& env() const { return env_.env(); }
  Client& client() { return *client_; }
  std::unique_ptr<Client> client_as(const std::string& token);
  std::unique_ptr<Client> client_with(const Client::Options& options);
  // Pauses the server, and returns once it does not answer any more, since a signal takes a moment to act. A command
  // resumes it.
  void freeze_server();
  // Returns a ConfigMap in this test's namespace.
  Object config_map(const std::string& name, const std::string& value) const;

  std::string ns_;

 private:
  SystemEnv env_{{.component = "test", .level = LogLevel::kOff}};
  std::unique_ptr<Client> client_;
};

}  // namespace gleaner::kube
