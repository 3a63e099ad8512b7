// RawMember: a member's end of the coordinator's stream over real gRPC, which a test controls message by message. Also
// makes identities, jobs and certificates for such tests.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"
#include "coordinator/service/service.h"
#include "tests/jumping_clock.h"
#include "tests/unit/run/program.h"

namespace gleaner::coordinator {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Waits until `condition` returns true, for kPatience at most. Returns whether it did.
template <typename Condition>
bool eventually(Condition condition) {
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end; absl::SleepFor(absl::Milliseconds(5))) {
    if (condition()) return true;
  }
  return false;
}

class RawMember {
 public:
  // Opens a new connection. `roots`: the certificates to trust, as PEM; empty: no TLS.
  explicit RawMember(const Address& service, const std::string& roots = "") {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (!roots.empty()) credentials = grpc::SslCredentials({roots, "", ""});
    stub_ = v1::Coordinator::NewStub(grpc::CreateCustomChannel(service.to_string(), credentials, arguments));
    context_.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
    stream_ = stub_->Join(&context_);
  }
  ~RawMember() {
    context_.TryCancel();
    if (!finished_) end();
  }

  // Returns the next message other than a heartbeat; nothing if the stream has ended.
  std::optional<v1::CoordinatorMessage> read() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
      if (!message.has_heartbeat()) return message;
    }
    return std::nullopt;
  }
  // Waits for a heartbeat. Returns false if the stream ended before.
  bool heartbeat() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
      if (message.has_heartbeat()) return true;
    }
    return false;
  }
  void write(const v1::MemberMessage& message) { stream_->Write(message); }
  // Waits until the stream has ended, and returns its status.
  grpc::Status end() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) continue;
    finished_ = true;
    return stream_->Finish();
  }
  void cancel() { context_.TryCancel(); }

  // Reads the Challenge and answers it with Join, which contains a proof of `token`, unless that is empty, and
  // `bearer`.
  void join(v1::Identity identity, const std::string& token, const std::string& bearer = "",
            const v1::Resume* resume = nullptr) {
    const auto message = read();
    if (!message.has_value() || !message->has_challenge()) return;
    challenge_ = message->challenge();
    v1::MemberMessage answer;
    v1::Join* join = answer.mutable_join();
    join->set_protocol(proto::kProtocol);
    identity.SerializeToString(join->mutable_identity());
    join->set_nonce(std::string(proto::kNonceBytes, 'm'));
    if (!token.empty()) {
      join->set_proof(
          proto::make_proof(token, proto::Prover::kMember, challenge_.nonce(), join->nonce(), join->identity()));
    }
    join->set_bearer(bearer);
    if (resume != nullptr) *join->mutable_resume() = *resume;
    write(answer);
  }
  // Follows the first plan. Returns whether it was committed.
  bool follow_plan() {
    while (const auto message = read()) {
      if (message->has_welcome()) welcome_ = message->welcome();
      if (message->has_prepare()) {
        v1::MemberMessage answer;
        answer.mutable_acknowledge()->set_epoch(message->prepare().plan().epoch());
        plan_ = message->prepare().plan();
        write(answer);
      }
      if (message->has_commit()) return true;
    }
    return false;
  }
  std::optional<v1::Welcome> await_welcome() {
    while (const auto message = read()) {
      if (message->has_welcome()) return message->welcome();
    }
    return std::nullopt;
  }

  const v1::Challenge& challenge() const { return challenge_; }
  const v1::Welcome& welcome() const { return welcome_; }
  const v1::Plan& plan() const { return plan_; }

 private:
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::MemberMessage, v1::CoordinatorMessage>> stream_;
  bool finished_ = false;
  v1::Challenge challenge_;
  v1::Welcome welcome_;
  v1::Plan plan_;
};

inline v1::Identity worker(const std::string& job, uint32_t index = 0) {
  v1::Identity identity;
  identity.set_job(job);
  identity.set_role(v1::ROLE_WORKER);
  identity.set_index(index);
  identity.set_local_size(1);
  identity.set_address(absl::StrCat("10.0.0.", index + 1, ":7071"));
  return identity;
}

inline v1::Identity summer(const std::string& job, uint32_t index) {
  v1::Identity identity = worker(job, index);
  identity.set_role(v1::ROLE_SUMMER);
  return identity;
}

inline Service::JobOptions token_job(const std::string& name, uint32_t workers = 1, uint32_t summers = 0) {
  Service::JobOptions job;
  job.options.job = name;
  job.options.workers = workers;
  job.options.summers = summers;
  job.token = absl::StrCat("token of ", name);
  return job;
}

// Makes a self-signed certificate for 127.0.0.1: DIRECTORY/{certificate,key}.pem.
inline void make_certificate(const std::string& directory) {
  std::filesystem::create_directory(directory);
  const Ended ended =
      run_to_end({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                  "-nodes", "-days", "2", "-subj", "/CN=coordinator", "-addext", "subjectAltName=IP:127.0.0.1",
                  "-keyout", directory + "/key.pem", "-out", directory + "/certificate.pem"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
}

}  // namespace gleaner::coordinator
