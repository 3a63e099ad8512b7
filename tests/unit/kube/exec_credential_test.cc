#include "common/kube/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/kube/exec_version.h"

namespace gleaner::kube {
namespace {

using testing::HasSubstr;

absl::StatusOr<ExecCredential> parse(const std::string& status) {
  return parse_exec_credential(
      absl::StrCat(R"({"kind": "ExecCredential", "apiVersion": ")", kExecVersion, R"(", "status": )", status, "}"),
      kExecVersion);
}

TEST(ExecCredential, HasATokenOrACertificate) {
  const auto token = parse(R"({"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"})");
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->token, "t");
  EXPECT_EQ(token->expiry, absl::FromCivil(absl::CivilSecond(2026, 1, 2, 3, 4, 5), absl::UTCTimeZone()));
  const auto certificate =
      parse(R"({"clientCertificateData": "c", "clientKeyData": "k", "expirationTimestamp": null})");
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->certificate, "c");
  EXPECT_EQ(certificate->key, "k");
  EXPECT_EQ(certificate->expiry, absl::InfiniteFuture());
}

TEST(ExecCredential, WrongOutputsAreErrorsWithoutSecrets) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", "status.token"},
      {R"({"token": ""})", "status.token"},
      {R"({"token": 7})", "status.token"},
      {R"({"clientCertificateData": "secret"})", "clientKeyData"},
      {R"({"token": "secret", "clientKeyData": "secret"})", "clientCertificateData"},
      {R"({"token": "secret", "expirationTimestamp": "soon"})", "expirationTimestamp 'soon'"},
      {R"("secret")", "status.token"},
  };
  for (const auto& [status, message] : cases) {
    const absl::Status outcome = parse(status).status();
    EXPECT_TRUE(absl::IsInvalidArgument(outcome)) << status;
    EXPECT_THAT(outcome.message(), HasSubstr(message)) << status;
    EXPECT_THAT(outcome.message(), testing::Not(HasSubstr("secret"))) << status;
  }
  for (const char* text : {"", "secret", "[]", "{", R"({"kind": "Secret"})"}) {
    EXPECT_THAT(parse_exec_credential(text, kExecVersion).status().message(), HasSubstr("expected an ExecCredential"))
        << text;
  }
  const absl::Status older =
      parse_exec_credential(R"({"kind": "ExecCredential", "apiVersion": "other/v1", "status": {"token": "t"}})",
                            kExecVersion)
          .status();
  EXPECT_THAT(older.message(), HasSubstr("not 'other/v1'"));
}

TEST(ExecCredential, InfoNamesTheClusterOnlyIfTheCommandAsks) {
  ExecCommand command{.api_version = kExecVersion};
  using nlohmann::json;
  EXPECT_EQ(json::parse(exec_info(command, true)),
            (json{{"apiVersion", kExecVersion}, {"kind", "ExecCredential"}, {"spec", {{"interactive", true}}}}));
  command.cluster = {{"server", "https://lab"}};
  EXPECT_EQ(json::parse(exec_info(command, false))["spec"],
            (json{{"interactive", false}, {"cluster", {{"server", "https://lab"}}}}));
}

}  // namespace
}  // namespace gleaner::kube
