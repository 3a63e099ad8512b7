// Tests of TLS at the coordinator: refused clients, and the renewal of the certificate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator_service/raw_member.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TlsTest : public testing::Test {
 protected:
  TlsTest() : system_({"test", LogLevel::kOff}) {
    for (const char* directory : {"first", "second"}) make_certificate(scratch_ / directory);
    point_to("first");
  }
  // Replaces both files at once, as Kubernetes does when it renews a mounted secret.
  void point_to(const std::string& directory) {
    std::filesystem::create_directory_symlink(directory, scratch_ / "next");
    std::filesystem::rename(scratch_ / "next", scratch_ / "now");
  }
  std::string roots(const std::string& directory) { return contents(scratch_ / (directory + "/certificate.pem")); }
  absl::StatusOr<std::unique_ptr<Service>> start() {
    Service::ServiceOptions options;
    options.listen = {"127.0.0.1", 0};
    options.tls = Service::Tls{scratch_ / "now/certificate.pem", scratch_ / "now/key.pem"};
    return Service::start(system_.env(), std::move(options));
  }

  SystemEnv system_;
  Scratch scratch_;
};

TEST_F(TlsTest, ClientsOfAnotherAuthorityGetNoAnswer) {
  const auto service = start();
  ASSERT_TRUE(service.ok()) << service.status();
  const Address address = (*service)->address();
  EXPECT_TRUE(RawMember(address, roots("first")).read().has_value());
  RawMember foreign(address, roots("second"));
  EXPECT_FALSE(foreign.read().has_value());
  EXPECT_EQ(foreign.end().error_code(), grpc::StatusCode::UNAVAILABLE);
  RawMember plain(address);
  EXPECT_FALSE(plain.read().has_value());
  RawMember elsewhere({"localhost", address.port}, roots("first"));
  EXPECT_FALSE(elsewhere.read().has_value()) << "the certificate is for another name";
}

TEST_F(TlsTest, OldVersionsAreRefused) {
  const auto service = start();
  ASSERT_TRUE(service.ok()) << service.status();
  const auto handshake = [&](const std::string& version) {
    // Security level 0 makes the client itself offer old versions.
    return run_to_end({"/bin/sh", "-c",
                       absl::StrCat("echo | exec timeout 20 openssl s_client -cipher DEFAULT@SECLEVEL=0 -", version,
                                    " -alpn h2 -connect ", (*service)->address().to_string())})
        .output;
  };
  EXPECT_THAT(handshake("tls1_2"), HasSubstr("ALPN protocol: h2"));
  EXPECT_THAT(handshake("tls1_3"), HasSubstr("ALPN protocol: h2"));
  EXPECT_THAT(handshake("tls1_1"), AllOf(HasSubstr("CONNECTED"), Not(HasSubstr("h2"))));
}

TEST_F(TlsTest, ARenewedCertificateTakesEffectWithoutBreakingStreams) {
  const auto service = start();
  ASSERT_TRUE(service.ok()) << service.status();
  ASSERT_EQ((*service)->add(token_job("j", 2)), absl::OkStatus());
  const Address address = (*service)->address();
  RawMember early(address, roots("first"));
  early.join(worker("j", 0), "token of j");
  ASSERT_TRUE(early.await_welcome().has_value());
  EXPECT_FALSE(RawMember(address, roots("second")).read().has_value());
  point_to("second");
  EXPECT_TRUE(eventually([&] { return RawMember(address, roots("second")).read().has_value(); }));
  EXPECT_FALSE(RawMember(address, roots("first")).read().has_value());
  EXPECT_TRUE(early.heartbeat()) << "admitted members stay";
}

TEST_F(TlsTest, UnusableFilesAreErrors) {
  std::filesystem::copy_file(scratch_ / "second/key.pem", scratch_ / "first/key.pem",
                             std::filesystem::copy_options::overwrite_existing);
  absl::Status status = start().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("now/key.pem"), HasSubstr("mismatch")));
  std::filesystem::remove(scratch_ / "first/certificate.pem");
  status = start().status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("now/certificate.pem"));
}

}  // namespace
}  // namespace gleaner::coordinator
