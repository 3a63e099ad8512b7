#include "tests/unit/kube/api_server.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/kube/object.h"
#include "tests/paths.h"

extern char** environ;

namespace gleaner::kube {
namespace {

// Returns the name of a program that is missing to start the server, or an empty string. Builds nothing, since a build
// takes minutes.
std::string missing_programs() {
  if (access("/usr/bin/etcd", X_OK) != 0) return "etcd is not installed (Debian: etcd-server)";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = cache != nullptr ? cache : absl::StrCat(home == nullptr ? "" : home, "/.cache");
  glob_t found{};
  const bool built = glob(absl::StrCat(folder, "/gleaner/e2e/kube-*/kube").c_str(), 0, nullptr, &found) == 0;
  globfree(&found);
  return built ? "" : "Kubernetes is not built (tests/e2e/binaries kube)";
}

struct Shared {
  std::unique_ptr<ApiServer> server;
  std::string why;
};

Shared& shared() {
  static Shared instance;
  return instance;
}

}  // namespace

ApiServer* shared_server() { return shared().server.get(); }
std::string why_no_server() { return shared().why; }

testing::Environment* server_environment() {
  class Environment final : public testing::Environment {
   public:
    void SetUp() override { shared().server = ApiServer::start(&shared().why); }
    void TearDown() override { shared() = {}; }
  };
  return new Environment;
}

std::unique_ptr<ApiServer> ApiServer::start(std::string* why) {
  *why = missing_programs();
  if (!why->empty()) return nullptr;
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) return nullptr;
  posix_spawn_file_actions_t files{};
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  const std::vector<std::string> command = {source_dir() + "/tests/e2e/control-plane",
                                            "--user",
                                            absl::StrCat("alice=", kAliceToken),
                                            "--user",
                                            absl::StrCat("bob=", kBobToken, ":system:masters"),
                                            "--user",
                                            absl::StrCat("carol=", kCarolToken, ":system:masters")};
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::unique_ptr<ApiServer> server(new ApiServer);
  const int error = posix_spawn(&server->pid_, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  close(in[0]);
  close(out[1]);
  server->to_child_ = in[1];
  server->from_child_ = out[0];
  const std::string line = error == 0 ? server->read_line(absl::Seconds(90)) : "";
  const auto description = nlohmann::json::parse(line, nullptr, false);
  if (!description.is_object()) {
    *why = absl::StrCat("tests/e2e/control-plane did not come up: '", line, "'");
    return nullptr;
  }
  server->folder_ = text_at(description, {"dir"});
  server->kubeconfig_ = text_at(description, {"kubeconfig"});
  server->admin_.server = text_at(description, {"server"});
  server->admin_.ca_file = text_at(description, {"ca"});
  server->admin_.token = text_at(description, {"admin_token"});
  return server;
}

ApiServer::~ApiServer() {
  if (to_child_ >= 0) close(to_child_);
  if (from_child_ >= 0) close(from_child_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void ApiServer::command(const std::string& text) {
  const std::string line = text + "\n";
  ASSERT_EQ(write(to_child_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  ASSERT_EQ(read_line(absl::Seconds(90)), "ok") << text;
}

std::string ApiServer::read_line(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    pollfd readable{from_child_, POLLIN, 0};
    const absl::Duration left = deadline - absl::Now();
    if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) <= 0) return "";
    std::array<char, 4096> bytes{};
    const ssize_t size = read(from_child_, bytes.data(), bytes.size());
    if (size <= 0) return "";
    unread_.append(bytes.data(), static_cast<size_t>(size));
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

void ApiServer::kubectl(const std::string& arguments, const std::string& input) const {
  const std::string command =
      absl::StrCat("echo '", input, "' | $(", source_dir(), "/tests/e2e/binaries kube)/kubectl --kubeconfig ",
                   kubeconfig_, " ", arguments, " >/dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

void ApiServer::install_crds() const { kubectl(absl::StrCat("apply --server-side -f ", source_dir(), "/crds")); }

bool eventually(const std::function<bool()>& condition, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

void ServerTest::SetUp() {
  if (shared_server() == nullptr) GTEST_SKIP() << why_no_server();
  client_ = client_as(server().admin().token);
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  ns_ = absl::AsciiStrToLower(test->name());
  const auto made = client().create(namespaces(), {{"metadata", {{"name", ns_}}}});
  ASSERT_TRUE(made.ok() || absl::IsAlreadyExists(made.status())) << made.status();
}

TokenFile::TokenFile(const std::string& name, const std::string& token)
    : path_(absl::StrCat(testing::TempDir(), "/", name, ".token")) {
  write(token);
}

TokenFile::~TokenFile() { std::filesystem::remove(path_); }

void TokenFile::write(const std::string& token) { std::ofstream(path_) << token; }

Credentials TokenFile::credentials(Credentials credentials) const {
  credentials.token.clear();
  credentials.token_file = path_;
  return credentials;
}

std::unique_ptr<Client> ServerTest::client_as(const std::string& token) {
  Client::Options options{.credentials = server().admin()};
  options.credentials.token = token;
  return client_with(options);
}

std::unique_ptr<Client> ServerTest::client_with(const Client::Options& options) {
  auto made = Client::create(env(), options);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

void ServerTest::freeze_server() {
  server().command("pause-apiserver");
  const auto hasty = client().bounded(absl::Milliseconds(100), nullptr);
  ASSERT_TRUE(eventually([&] { return absl::IsDeadlineExceeded(hasty->get_raw("/version").status()); }));
}

Object ServerTest::config_map(const std::string& name, const std::string& value) const {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"namespace", ns_}, {"name", name}, {"labels", {{"test", "yes"}}}}},
          {"data", {{"value", value}}}};
}

}  // namespace gleaner::kube
