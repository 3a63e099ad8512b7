// Tests of members and a coordinator over real gRPC on loopback.
#include "common/member/client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "common/proto/plan_codec.h"
#include "coordinator/service/server.h"
#include "tests/held_port.h"
#include "tests/paths.h"
#include "tests/unit/member/participant.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs `gleaner coordinator` for one worker in a separate process, which can be killed. A fork without exec is not
// possible, since gRPC does not work in the child.
class CoordinatorProcess {
 public:
  CoordinatorProcess() {
    const std::string token_file = absl::StrCat(testing::TempDir(), "/token-", ::getpid());
    std::ofstream(token_file) << kToken;
    const std::string program = bin_dir() + "/gleaner";
    int output[2];
    if (::pipe(output) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(output[1], STDOUT_FILENO);
      ::execl(program.c_str(), "gleaner", "coordinator", "--listen", "127.0.0.1:0", "--workers", "1", "--summers", "0",
              "--token-file", token_file.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(output[1]);
    char text[128] = {};
    const ssize_t size = ::read(output[0], text, sizeof(text) - 1);
    ::close(output[0]);
    const std::string line(text, size > 0 ? static_cast<size_t>(size) : 0);
    const auto parsed = Address::parse(absl::StripAsciiWhitespace(line.substr(line.rfind(' ') + 1)));
    if (parsed.ok()) address_ = *parsed;
    std::remove(token_file.c_str());
  }
  ~CoordinatorProcess() { kill(); }

  const Address& address() const { return address_; }  // port 0: it did not start
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
  Address address_;
};

// Returns a socket that listens on this port of 127.0.0.1, which a HeldPort holds.
int listen_on(uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(port);
  EXPECT_EQ(::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
  EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(::listen(listener, 8), 0);
  return listener;
}

class ClientTest : public testing::Test {
 protected:
  ClientTest() : system_({"test", LogLevel::kOff}) {
    options_.workers = 2;
    options_.summers = 1;
    // No member of a slow machine counts as silent.
    options_.deadline = options_.summer_timeout = options_.change_timeout = absl::Minutes(5);
  }

  void start(uint16_t port = 0) {
    auto server = coordinator::Server::start(system_.env(), options_, kToken, {"127.0.0.1", port}, nullptr);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  member::JoinOptions worker_options(uint32_t index, uint32_t local_rank = 0) const {
    member::JoinOptions join;
    join.coordinator = address_;
    join.token = kToken;
    join.identity.index = index;
    join.identity.local_rank = local_rank;
    join.identity.local_size = options_.local_ranks;
    if (local_rank == 0) join.identity.address = absl::StrCat("127.0.0.1:", 7000 + index);
    join.timeout = absl::Minutes(5);
    return join;
  }
  member::JoinOptions summer_options() const {
    member::JoinOptions join = worker_options(0);
    join.identity.role = control::Role::kSummer;
    join.identity.index = std::nullopt;
    join.identity.address = "127.0.0.1:7100";
    return join;
  }
  std::unique_ptr<Participant> join(const member::JoinOptions& options) {
    return std::make_unique<Participant>(system_.env(), options);
  }

  SystemEnv system_;
  coordinator::Options options_;
  Address address_;
  std::unique_ptr<coordinator::Server> server_;
};

TEST_F(ClientTest, MembersJoinPlanAndLeave) {
  options_.worker_bits_per_second = {1e9, 2e9};
  start();
  auto summer = join(summer_options());
  auto zero = join(worker_options(0));
  auto one = join(worker_options(1));
  const auto first = zero->await_epoch(1);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->tensors.empty());
  EXPECT_EQ(first->members[1].address, "127.0.0.1:7001");
  EXPECT_EQ(first->members[2].address, "127.0.0.1:7100");
  EXPECT_EQ(first->members[1].bits_per_second, 2e9);
  const auto here = summer->await_welcome(), there = one->await_welcome();
  EXPECT_EQ(here->member, 2u);
  EXPECT_EQ(there->member, 1u);
  EXPECT_EQ(here->secret, there->secret);
  EXPECT_NE(here->secret, wire::Secret{});

  // The plan uses the order and the priorities of rank 0.
  zero->client().declare({{"b", 1000, DataType::kFloat32, 5}, {"a", 10, DataType::kFloat16, 6}});
  one->client().declare({{"a", 10, DataType::kFloat16, 0}, {"b", 1000, DataType::kFloat32, 0}});
  const auto second = summer->await_epoch(2);
  ASSERT_NE(second, nullptr);
  ASSERT_EQ(second->tensors.size(), 2u);
  plan::Tensor expected{"b", 1000, DataType::kFloat32, 5};
  expected.since = 2;
  EXPECT_EQ(second->tensors[0], expected);
  EXPECT_EQ(*zero->await_epoch(2), *second);

  zero->client().report({10, 40200, 0.5});
  zero->leave();
  one->leave();
  EXPECT_TRUE(summer->await_finished());
  summer.reset();
  EXPECT_EQ(server_->wait(), absl::OkStatus());
  EXPECT_EQ(server_->summary().whole.steps, 10u);
  EXPECT_EQ(server_->summary().whole.bytes_per_step, 4020);
  EXPECT_EQ(server_->summary().epoch, 2u);
  EXPECT_FALSE(zero->failed() || one->failed());
}

TEST_F(ClientTest, LocalRanksShareAMember) {
  options_.workers = 1;
  options_.summers = 0;
  options_.local_ranks = 2;
  start();
  auto zero = join(worker_options(0, 0));
  auto one = join(worker_options(0, 1));
  ASSERT_NE(one->await_epoch(1), nullptr);
  EXPECT_EQ(one->await_welcome()->member, 0u);
  EXPECT_EQ(one->await_epoch(1)->members.size(), 1u);
  EXPECT_EQ(one->await_epoch(1)->local_ranks, 2u);
}

TEST_F(ClientTest, ManyMembersManyTensors) {
  options_.workers = 24;
  options_.summers = 8;
  options_.partition_bytes = 4096;
  start();
  std::vector<plan::Tensor> tensors;
  for (int i = 0; i < 2000; ++i) {
    tensors.push_back({absl::StrCat("layer", i, ".weight"), 5000, DataType::kFloat32, i});
  }
  std::vector<std::unique_ptr<Participant>> members;
  for (uint32_t i = 0; i < options_.summers; ++i) members.push_back(join(summer_options()));
  for (uint32_t i = 0; i < options_.workers; ++i) {
    members.push_back(join(worker_options(i)));
    members.back()->client().declare(tensors);
  }
  const auto plan = members[0]->await_epoch(2);
  ASSERT_NE(plan, nullptr);
  for (plan::Tensor& tensor : tensors) tensor.since = 2;
  EXPECT_EQ(plan->tensors, tensors);
  for (const auto& member : members) {
    const auto same = member->await_epoch(2);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(*same, *plan);
  }
}

TEST_F(ClientTest, MembersMayStartBeforeTheCoordinator) {
  const HeldPort port;
  address_ = {"127.0.0.1", port.port()};
  options_.workers = 1;
  options_.summers = 0;
  auto early = join(worker_options(0));
  // Accepts the member's first connection, and ends it.
  const int listener = listen_on(address_.port);
  ::close(::accept(listener, nullptr, nullptr));
  ::close(listener);
  start(port.port());
  EXPECT_NE(early->await_epoch(1), nullptr);
}

TEST_F(ClientTest, AWrongTokenIsRefused) {
  start();
  member::JoinOptions wrong = worker_options(0);
  wrong.token = "another";
  const absl::Status status = join(wrong)->await_failure();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("token"));
  EXPECT_FALSE(server_->outcome().has_value()) << "the job continues";
}

// Accepts every member, but does not know the token.
class Impostor : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(protocol);
    message.mutable_challenge()->set_nonce(std::string(32, 'n'));
    stream->Write(message);
    v1::MemberMessage answer;
    if (!stream->Read(&answer)) return grpc::Status::OK;
    EXPECT_EQ(answer.SerializeAsString().find(kToken), std::string::npos);
    message.mutable_welcome()->set_job_nonce(std::string(32, 'j'));
    message.mutable_welcome()->set_proof(answer.join().proof());
    stream->Write(message);
    stream->Read(&answer);
    return grpc::Status::OK;
  }

 public:
  uint32_t protocol = proto::kProtocol;
};

TEST_F(ClientTest, AFalseCoordinatorIsDetected) {
  Impostor impostor;
  int port = 0;
  const auto server = grpc::ServerBuilder()
                          .AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port)
                          .RegisterService(&impostor)
                          .BuildAndStart();
  address_ = {"127.0.0.1", static_cast<uint16_t>(port)};
  auto member = join(worker_options(0));
  EXPECT_FALSE(member->await_welcome().has_value());
  EXPECT_TRUE(absl::IsPermissionDenied(member->await_failure())) << member->await_failure();

  impostor.protocol = proto::kProtocol + 1;
  const absl::Status status = join(worker_options(0))->await_failure();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(absl::StrCat("protocol ", proto::kProtocol + 1)),
                                                   HasSubstr(absl::StrCat("protocol ", proto::kProtocol))));
}

// Sends messages that a member must not send.
TEST_F(ClientTest, TheCoordinatorSurvivesForeignClients) {
  options_.workers = 1;
  options_.summers = 0;
  start();
  const auto stub =
      v1::Coordinator::NewStub(grpc::CreateChannel(address_.to_string(), grpc::InsecureChannelCredentials()));
  const auto say = [&](const v1::MemberMessage& message) {
    grpc::ClientContext context;
    const auto stream = stub->Join(&context);
    v1::CoordinatorMessage answer;
    EXPECT_TRUE(stream->Read(&answer) && answer.has_challenge());
    stream->Write(message);
    EXPECT_FALSE(stream->Read(&answer));
    return stream->Finish();
  };
  v1::MemberMessage message;
  message.mutable_leave();
  EXPECT_EQ(say(message).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "Leave is not a valid first message";
  message.mutable_join()->set_protocol(7);
  EXPECT_EQ(say(message).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  message.mutable_join()->set_protocol(proto::kProtocol);
  EXPECT_EQ(say(message).error_code(), grpc::StatusCode::PERMISSION_DENIED) << "no proof";
  auto zero = join(worker_options(0));
  EXPECT_NE(zero->await_epoch(1), nullptr);
}

TEST_F(ClientTest, RejectionsHaveAReasonAndNoEffectOnMembers) {
  start();
  auto zero = join(worker_options(0));
  ASSERT_TRUE(zero->await_welcome().has_value());
  absl::Status status = join(worker_options(0))->await_failure();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 0 at 127.0.0.1:7000 has joined already"));

  status = join(worker_options(2))->await_failure();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 2 is not in this job, which has 2"));

  member::JoinOptions other = worker_options(1);
  other.identity.job = "other";
  status = join(other)->await_failure();
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'default'"), HasSubstr("'other'")));

  other = worker_options(1);
  other.identity.local_size = 4;
  status = join(other)->await_failure();
  EXPECT_THAT(std::string(status.message()), HasSubstr("local rank 0 of 4"));

  auto summer = join(summer_options());
  auto one = join(worker_options(1));
  EXPECT_NE(zero->await_epoch(1), nullptr) << "the other members start without it";
  member::JoinOptions late = summer_options();
  late.identity.address = "127.0.0.1:7101";
  const auto newcomer = join(late);
  ASSERT_TRUE(newcomer->await_welcome().has_value()) << "summers may join at any time";
  EXPECT_EQ(newcomer->await_welcome()->member, 3u);
}

TEST_F(ClientTest, MissingMembersAreNamed) {
  options_.start_timeout = absl::Milliseconds(500);
  start();
  auto one = join(worker_options(1));
  const std::string message(one->await_failure().message());
  EXPECT_THAT(message, HasSubstr("worker 0, summer 0 did not join within 500ms"));
  EXPECT_EQ(server_->wait().message(), message);
}

TEST_F(ClientTest, DifferentDeclarationsFailTheJob) {
  start();
  auto summer = join(summer_options());
  auto zero = join(worker_options(0));
  auto one = join(worker_options(1));
  ASSERT_NE(one->await_epoch(1), nullptr);
  zero->client().declare({{"fc.weight", 100, DataType::kFloat32, 0}});
  one->client().declare({{"fc.weight", 90, DataType::kFloat16, 0}});
  const absl::Status status = summer->await_failure();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'fc.weight'"), HasSubstr("worker 0"), HasSubstr("worker 1"),
                    HasSubstr("100 elements of fp32"), HasSubstr("90 elements of fp16")));
  EXPECT_EQ(zero->await_failure(), status);
  EXPECT_EQ(one->await_failure(), status);
}

TEST_F(ClientTest, RefusedPlanFailsTheJob) {
  start();
  auto summer = join(summer_options());
  auto zero = join(worker_options(0));
  zero->refuse_plans(absl::ResourceExhaustedError("no memory"));
  auto one = join(worker_options(1));
  EXPECT_THAT(std::string(one->await_failure().message()), AllOf(HasSubstr("worker 0 at "), HasSubstr("no memory")));
}

TEST_F(ClientTest, LostMemberIsNamedToEveryone) {
  start();
  auto summer = join(summer_options());
  auto zero = join(worker_options(0));
  auto one = join(worker_options(1));
  ASSERT_NE(zero->await_epoch(1), nullptr);
  one.reset();  // without saying that it leaves
  const absl::Status status = zero->await_failure();
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1 at 127.0.0.1:7001 is lost"));
  EXPECT_EQ(summer->await_failure(), status);
  EXPECT_EQ(server_->wait(), status);
  ASSERT_TRUE(server_->culprit().has_value());
  EXPECT_EQ(server_->culprit()->member, 1u);
}

TEST_F(ClientTest, FailedWorkerAndFaultAreNamed) {
  options_.summers = 0;
  start();
  auto zero = join(worker_options(0));
  auto one = join(worker_options(1));
  ASSERT_NE(zero->await_epoch(1), nullptr);
  EXPECT_TRUE(one->client().leave(absl::AbortedError("loss is NaN"), kPatience));
  EXPECT_THAT(std::string(zero->await_failure().message()), AllOf(HasSubstr("worker 1"), HasSubstr("loss is NaN")));
  EXPECT_FALSE(one->failed()) << "a member that has left gets no message";

  start();
  zero = join(worker_options(0));
  one = join(worker_options(1));
  ASSERT_NE(zero->await_epoch(1), nullptr);
  zero->client().fault(1, 1, absl::UnavailableError("connection refused"));
  EXPECT_THAT(std::string(one->await_failure().message()),
              AllOf(HasSubstr("worker 1 at 127.0.0.1:7001 is lost"), HasSubstr("worker 0 reports"),
                    HasSubstr("connection refused")));
}

TEST_F(ClientTest, AReportOfAnEarlierPlanDoesNotConcernASummerThatJoinedLater) {
  options_.summers = 0;
  start();
  auto zero = join(worker_options(0));
  auto one = join(worker_options(1));
  ASSERT_NE(zero->await_epoch(1), nullptr);
  auto summer = join(summer_options());
  ASSERT_NE(summer->await_epoch(2), nullptr);
  ASSERT_NE(zero->await_epoch(2), nullptr);
  zero->client().fault(2, 1, absl::UnavailableError("too early"));
  zero->client().fault(2, 2, absl::UnavailableError("connection refused"));
  EXPECT_THAT(std::string(summer->await_failure().message()), HasSubstr("connection refused"));
}

TEST_F(ClientTest, AnUnreachableCoordinatorIsAnErrorWithAdvice) {
  const HeldPort port;  // nobody listens
  address_ = {"127.0.0.1", port.port()};
  member::JoinOptions options = worker_options(0);
  options.timeout = absl::Milliseconds(300);
  const absl::Status status = join(options)->await_failure();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(address_.to_string()), HasSubstr("refused"), HasSubstr("GLEANER_COORDINATOR")));
}

TEST_F(ClientTest, AnotherServerAtTheAddressIsAnError) {
  const HeldPort port;
  address_ = {"127.0.0.1", port.port()};
  const int listener = listen_on(address_.port);  // no connection is ever accepted
  member::JoinOptions options = worker_options(0);
  options.timeout = absl::Milliseconds(500);
  EXPECT_THAT(std::string(join(options)->await_failure().message()), HasSubstr("can't reach the coordinator"));
  ::close(listener);
}

TEST_F(ClientTest, ALostCoordinatorFailsTheJobOnlyBeforeTheStart) {
  start();
  auto zero = join(worker_options(0));
  ASSERT_TRUE(zero->await_welcome().has_value());
  server_.reset();
  EXPECT_THAT(std::string(zero->await_failure().message()), HasSubstr("shutting down"));
}

TEST_F(ClientTest, TrainingContinuesAfterTheCoordinatorDied) {
  CoordinatorProcess coordinator;
  address_ = coordinator.address();
  ASSERT_NE(address_.port, 0);
  auto zero = join(worker_options(0));
  zero->client().declare({{"a", 8, DataType::kFloat32, 0}});
  ASSERT_NE(zero->await_epoch(2), nullptr);
  coordinator.kill();
  EXPECT_TRUE(zero->await_coordinator_lost());
  EXPECT_FALSE(zero->failed());
  zero->client().declare({{"a", 8, DataType::kFloat32, 0}});  // it is in the plan already, so this has no effect
  zero->client().report({1, 32, 0.1});
  EXPECT_FALSE(zero->failed());
  zero->client().declare({{"b", 8, DataType::kFloat32, 0}});
  EXPECT_THAT(std::string(zero->await_failure().message()), HasSubstr("tensor 'b'"));
  zero->leave();
}

TEST_F(ClientTest, NoCallbackAfterStop) {
  options_.workers = 1;
  options_.summers = 0;
  start();
  for (int i = 0; i < 20; ++i) {
    auto zero = join(worker_options(0));
    absl::SleepFor(absl::Milliseconds(i));
    zero->client().stop();
    zero->client().stop();
    zero.reset();  // callbacks that still ran would use freed memory
  }
}

TEST_F(ClientTest, APortInUseIsAnError) {
  start();
  const auto second = coordinator::Server::start(system_.env(), options_, kToken, address_, nullptr);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), AllOf(HasSubstr(address_.to_string()), HasSubstr("in use")));
}

}  // namespace
}  // namespace gleaner
