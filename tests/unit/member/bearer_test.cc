// Tests of members that authenticate with a bearer token to a coordinator that uses TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/member/observer.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "common/proto/plan_codec.h"
#include "coordinator/service/service.h"
#include "tests/unit/member/restart.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Accepts the token "right-N" for worker N.
class Doorkeeper final : public coordinator::Authenticator {
 public:
  explicit Doorkeeper(std::string password) : password_(std::move(password)) {}
  void authenticate(const std::string&, const coordinator::Identity& identity, const std::string& bearer,
                    std::function<void(absl::Status)> done) override {
    done(bearer == absl::StrCat(password_, "-", *identity.index)
             ? absl::OkStatus()
             : absl::PermissionDeniedError(absl::StrCat("not the token of worker ", *identity.index)));
  }

 private:
  const std::string password_;
};

class BearerTest : public RestartTest {
 protected:
  BearerTest() {
    job_.token.clear();
    job_.data_secret = std::string(32, 's');
    job_.options.summers = 0;
    service_options_.tls = coordinator::Service::Tls{scratch_ / "certificate.pem", scratch_ / "key.pem"};
  }
  // Ends the coordinator before the doorkeeper, which it calls until it has ended.
  ~BearerTest() override {
    members_.clear();
    kill();
  }
  // Makes a self-signed certificate for 127.0.0.1.
  void renew(const std::string& password) {
    const Ended ended =
        run_to_end({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=coordinator", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", scratch_ / "key.pem", "-out", scratch_ / "certificate.pem"});
    ASSERT_EQ(ended.status, 0) << ended.errors;
    for (int i = 0; i < 2; ++i) {
      std::ofstream(scratch_ / absl::StrCat("token-", i)) << password << "-" << i << "\n";
    }
    doorkeeper_ = std::make_unique<Doorkeeper>(password);
    service_options_.authenticator = doorkeeper_.get();
  }
  member::JoinOptions bearer_options(uint32_t index) const {
    member::JoinOptions options = worker_options(index);
    options.token = "stale";
    options.token_file = scratch_ / absl::StrCat("token-", index);
    options.ca_file = scratch_ / "certificate.pem";
    return options;
  }

  Scratch scratch_;
  std::unique_ptr<Doorkeeper> doorkeeper_;
};

TEST_F(BearerTest, TokensAndAuthoritiesMayBeRenewedMidJob) {
  renew("first");
  start_job(false);
  for (uint32_t i = 0; i < 2; ++i) {
    members_.push_back(std::make_unique<Participant>(system_.env(), bearer_options(i)));
  }
  await_all(1);
  wire::Secret expected;
  expected.fill('s');
  EXPECT_EQ(members_[0]->await_welcome()->secret, expected);
  kill();
  renew("second");
  start_job();
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_found());
  declare_all("a");
  await_all(2);
}

TEST_F(BearerTest, AnObserverShowsATokenLikeAMember) {
  renew("right");
  start_job(false);
  for (uint32_t i = 0; i < 2; ++i) {
    members_.push_back(std::make_unique<Participant>(system_.env(), bearer_options(i)));
  }
  await_all(1);
  const auto observer = member::Observer::join(system_.env(), bearer_options(0));
  ASSERT_TRUE(observer.ok()) << observer.status();
  EXPECT_EQ((*observer)->record(), absl::OkStatus());
  EXPECT_TRUE(members_[1]->await_orders({control::TraceOrder::kRecord}));

  member::JoinOptions foreign = bearer_options(0);
  foreign.token_file = scratch_ / "token-1";
  EXPECT_TRUE(absl::IsPermissionDenied(member::Observer::join(system_.env(), foreign).status()));
}

TEST_F(BearerTest, ForeignTokensAndAuthoritiesAreRefused) {
  renew("right");
  start_job(false);
  member::JoinOptions options = bearer_options(0);
  options.token_file = scratch_ / "token-1";
  EXPECT_TRUE(absl::IsPermissionDenied(Participant(system_.env(), options).await_failure()));

  options = bearer_options(0);
  options.ca_file = scratch_ / "other.pem";
  std::filesystem::copy(scratch_ / "certificate.pem", options.ca_file);
  kill();
  renew("right");
  start_job(false);
  options.timeout = absl::Milliseconds(300);
  absl::Status status = Participant(system_.env(), options).await_failure();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;

  options = bearer_options(0);
  options.coordinator.host = "localhost";
  options.timeout = absl::Milliseconds(300);
  status = Participant(system_.env(), options).await_failure();
  EXPECT_TRUE(absl::IsUnavailable(status)) << "the certificate is for another name: " << status;
}

TEST_F(BearerTest, UnusableFilesAreErrorsAtOnce) {
  renew("right");
  start_job(false);
  struct Silent : member::Listener {
    void on_event(const member::Event&) override {}
  } listener;
  member::JoinOptions options = bearer_options(0);
  options.ca_file = scratch_ / "absent";
  auto client = member::Client::start(system_.env(), options, &listener);
  EXPECT_TRUE(absl::IsNotFound(client.status())) << client.status();
  options.ca_file = scratch_ / "token-0";
  client = member::Client::start(system_.env(), options, &listener);
  EXPECT_THAT(std::string(client.status().message()), AllOf(HasSubstr("token-0"), HasSubstr("no certificate")));
}

// Asks for the token itself, without TLS.
class Thief final : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(proto::kProtocol);
    message.mutable_challenge()->set_nonce(std::string(32, 'n'));
    message.mutable_challenge()->set_authentication(v1::AUTHENTICATION_BEARER);
    stream->Write(message);
    v1::MemberMessage answer;
    got_answer = stream->Read(&answer);
    return grpc::Status::OK;
  }

 public:
  std::atomic<bool> got_answer{false};
};

TEST_F(BearerTest, TokenIsNotSentInPlainText) {
  renew("right");
  Thief thief;
  int port = 0;
  const auto server = grpc::ServerBuilder()
                          .AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port)
                          .RegisterService(&thief)
                          .BuildAndStart();
  address_ = {"127.0.0.1", static_cast<uint16_t>(port)};
  member::JoinOptions options = bearer_options(0);
  options.ca_file.clear();
  const absl::Status status = Participant(system_.env(), options).await_failure();
  EXPECT_THAT(std::string(status.message()), HasSubstr("GLEANER_CA_FILE"));
  EXPECT_FALSE(thief.got_answer);
}

}  // namespace
}  // namespace gleaner
