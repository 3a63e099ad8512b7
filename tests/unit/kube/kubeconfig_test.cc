#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/kube/credentials.h"

namespace gleaner::kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kConfig[] = R"(
apiVersion: v1
kind: Config
current-context: lab
contexts:
- {name: lab, context: {cluster: one, user: tom, namespace: team}}
- {name: certs, context: {cluster: one, user: ann}}
- {name: plugin, context: {cluster: one, user: aws}}
- {name: careless, context: {cluster: blind, user: tom}}
- {name: lost, context: {cluster: nowhere, user: tom}}
- {name: far, context: {cluster: two, user: login}}
clusters:
- {name: one, cluster: {server: "https://10.0.0.1:6443", certificate-authority: pki/ca.crt}}
- {name: blind, cluster: {server: "https://10.0.0.1:6443", insecure-skip-tls-verify: true}}
- name: two
  cluster:
    server: "https://10.0.0.2:6443"
    certificate-authority: pki/ca.crt
    tls-server-name: api.lab
    proxy-url: http://proxy:3128
    extensions:
    - {name: other, extension: {audience: none}}
    - name: client.authentication.k8s.io/exec
      extension: {audience: 06e3, depth: 3, strict: true, text: "3"}
users:
- {name: tom, user: {tokenFile: /var/token, token: ignored}}
- {name: ann, user: {client-certificate-data: aGVsbG8=, client-key-data: d29ybGQ=}}
- name: aws
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: aws
      args: [eks, 7]
      env: [{name: AWS_PROFILE, value: lab}]
      installHint: "see \e[31mhere\nor there"
- name: login
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, provideClusterInfo: true,
           interactiveMode: Never}
)";

// Returns a kubeconfig with one user, "ann", who has the given fields.
std::string with_user(const std::string& fields) {
  return absl::StrCat("current-context: lab\ncontexts: [{name: lab, context: {cluster: one, user: ann}}]\n",
                      "clusters: [{name: one, cluster: {server: https://lab}}]\nusers: [{name: ann, user: {", fields,
                      "}}]\n");
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class KubeconfigTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/kubeconfigXXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<Credentials> read(const std::string& text, const std::string& context = "") const {
    return kubeconfig_credentials(write("config", text), context);
  }

  std::string folder_;
};

TEST_F(KubeconfigTest, ReadsTheCurrentContext) {
  const auto credentials = read(kConfig);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->server, "https://10.0.0.1:6443");
  EXPECT_EQ(credentials->ca_file, absl::StrCat(folder_, "/pki/ca.crt")) << "relative to the kubeconfig";
  EXPECT_EQ(credentials->token_file, "/var/token");
  EXPECT_EQ(credentials->token, "") << "a token file goes before a token";
  EXPECT_EQ(credentials->ns, "team");
}

TEST_F(KubeconfigTest, KeepsInlineDataInFilesOfThisProcess) {
  const auto credentials = read(kConfig, "certs");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(contents(credentials->client_cert_file), "hello");
  EXPECT_EQ(contents(credentials->client_key_file), "world");
  EXPECT_EQ(contents(credentials->client_key_file), "world") << "the key file should be readable again";
  EXPECT_EQ(credentials->ns, "default");
}

TEST_F(KubeconfigTest, ReadsTheCommandOfAUser) {
  const auto credentials = read(kConfig, "plugin");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  ASSERT_TRUE(credentials->exec);
  const ExecCommand& command = *credentials->exec;
  EXPECT_EQ(command.api_version, "client.authentication.k8s.io/v1beta1");
  EXPECT_THAT(command.arguments, ElementsAre("aws", "eks", "7"));
  EXPECT_THAT(command.variables, ElementsAre(Pair("AWS_PROFILE", "lab")));
  EXPECT_EQ(command.install_hint, "see [31mhere\nor there") << "no control character reaches the terminal";
  EXPECT_EQ(command.input, ExecInput::kIfTerminal) << "the default of v1beta1";
  EXPECT_TRUE(command.cluster.is_null()) << "provideClusterInfo is not set";
}

TEST_F(KubeconfigTest, TellsTheCommandItsCluster) {
  std::filesystem::create_directory(absl::StrCat(folder_, "/pki"));
  write("pki/ca.crt", "hello");
  const auto credentials = read(kConfig, "far");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->tls_server_name, "api.lab");
  EXPECT_EQ(credentials->proxy_url, "http://proxy:3128");
  ASSERT_TRUE(credentials->exec);
  EXPECT_THAT(credentials->exec->arguments, ElementsAre(folder_ + "/bin/login")) << "relative to the kubeconfig";
  const nlohmann::json wanted = {{"server", "https://10.0.0.2:6443"},
                                 {"tls-server-name", "api.lab"},
                                 {"proxy-url", "http://proxy:3128"},
                                 {"certificate-authority-data", "aGVsbG8="},
                                 {"config", {{"audience", "06e3"}, {"depth", 3}, {"strict", true}, {"text", "3"}}}};
  EXPECT_EQ(credentials->exec->cluster, wanted);
}

TEST_F(KubeconfigTest, TokensAndCertificatesGoBeforeTheCommand) {
  for (const char* other : {"token: t", "tokenFile: /t", "client-certificate-data: aGk=, client-key-data: aGk="}) {
    const auto credentials = read(with_user(absl::StrCat("exec: {command: 7}, ", other)));
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    EXPECT_FALSE(credentials->exec) << other;
  }
}

TEST_F(KubeconfigTest, NamesWrongFieldsOfTheCommand) {
  const std::string v1 = "apiVersion: client.authentication.k8s.io/v1";
  const std::pair<std::string, std::string> cases[] = {
      {"command: c", "apiVersion ''"},
      {"command: c, apiVersion: client.authentication.k8s.io/v1alpha1", "v1alpha1' is not supported"},
      {v1 + ", interactiveMode: Never", "command is missing"},
      {v1 + ", command: c", "interactiveMode must be"},
      {v1 + ", command: c, interactiveMode: Sometimes", "not 'Sometimes'"},
      {v1 + ", command: c, interactiveMode: Never, env: [{value: v}]", "env has no name"},
  };
  for (const auto& [exec, message] : cases) {
    EXPECT_THAT(read(with_user(absl::StrCat("exec: {", exec, "}"))).status().message(),
                AllOf(HasSubstr("'ann', exec: "), HasSubstr(message)))
        << exec;
  }
}

TEST_F(KubeconfigTest, UnsupportedSettingsAreErrorsWithAdvice) {
  const absl::Status plugin = read(with_user("auth-provider: {name: gcp}")).status();
  EXPECT_TRUE(absl::IsUnimplemented(plugin)) << plugin;
  EXPECT_THAT(plugin.message(), HasSubstr("kubectl create token"));
  for (const char* field : {"username", "password", "as", "as-groups"}) {
    const absl::Status status = read(with_user(absl::StrCat(field, ": x"))).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("has '", field, "'")));
  }
  const absl::Status careless = read(kConfig, "careless").status();
  EXPECT_TRUE(absl::IsUnimplemented(careless));
  EXPECT_THAT(careless.message(), HasSubstr("tls-server-name"));
}

TEST_F(KubeconfigTest, NamesMissingFields) {
  EXPECT_THAT(read(kConfig, "lost").status().message(), HasSubstr("no cluster 'nowhere'"));
  EXPECT_THAT(read(kConfig, "other").status().message(), HasSubstr("no context 'other'"));
  EXPECT_THAT(read("kind: Config\n").status().message(), HasSubstr("current-context"));
  EXPECT_TRUE(absl::IsNotFound(kubeconfig_credentials(absl::StrCat(folder_, "/none"), "").status()));
}

TEST_F(KubeconfigTest, BrokenFilesAreErrors) {
  for (const char* text :
       {"{", "- 1\n- 2\n", "", "\xff\xfe", "current-context: [a]\n", "current-context: a\ncontexts: 3\n",
        "current-context: a\ncontexts: [{name: a, context: 7}]\n"}) {
    EXPECT_FALSE(read(text).ok()) << text;
  }
}

TEST_F(KubeconfigTest, FirstFileWithAValueCounts) {
  const std::string first = write("first", "current-context: certs\n");
  const std::string second = write("second", kConfig);
  ASSERT_EQ(setenv("KUBECONFIG", absl::StrCat(folder_, "/none:", first, ":", second).c_str(), 1), 0);
  const auto credentials = kubeconfig_credentials("", "");
  unsetenv("KUBECONFIG");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_NE(credentials->client_cert_file, "");
}

TEST(InClusterCredentials, OutsideOfAPodAreNotFound) {
  EXPECT_TRUE(absl::IsNotFound(in_cluster_credentials().status()));
}

}  // namespace
}  // namespace gleaner::kube
