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

using testing::HasSubstr;

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
clusters:
- {name: one, cluster: {server: "https://10.0.0.1:6443", certificate-authority: pki/ca.crt}}
- {name: blind, cluster: {server: "https://10.0.0.1:6443", insecure-skip-tls-verify: true}}
users:
- {name: tom, user: {tokenFile: /var/token, token: ignored}}
- {name: ann, user: {client-certificate-data: aGVsbG8=, client-key-data: d29ybGQ=}}
- {name: aws, user: {exec: {command: aws}}}
)";

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

TEST_F(KubeconfigTest, UnsupportedSettingsAreErrorsWithAdvice) {
  const absl::Status plugin = read(kConfig, "plugin").status();
  EXPECT_TRUE(absl::IsUnimplemented(plugin)) << plugin;
  EXPECT_THAT(plugin.message(), HasSubstr("kubectl create token"));
  EXPECT_TRUE(absl::IsUnimplemented(read(kConfig, "careless").status()));
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
