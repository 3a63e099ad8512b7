#include "bench/coordinator_members.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "common/proto/plan_codec.h"

namespace gleaner::bench {
namespace {

constexpr uint32_t kJoiningAtOnce = 128;  // a coordinator limits the unauthenticated streams of one host
constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Minutes(5);
constexpr absl::Duration kSettle = absl::Milliseconds(200);  // time for written messages to reach the coordinator

struct Session {
  enum Operation : uint8_t { kStart, kRead, kWrite, kOperations };
  struct Tag {
    Session* session;
    Operation operation;
  };

  uint32_t index = 0;
  std::unique_ptr<v1::Coordinator::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::MemberMessage, v1::CoordinatorMessage>> stream;
  v1::CoordinatorMessage incoming;
  std::deque<v1::MemberMessage> writes;
  bool writing = false;
  bool joined = false;
  uint32_t epoch = 0;  // of the last Commit
  absl::Time committed;
  absl::Time beat;
  Tag tags[kOperations] = {{this, kStart}, {this, kRead}, {this, kWrite}};
};

class Sessions {
 public:
  Sessions(const std::string& coordinator, const std::string& roots, const Load& load) : load_(load) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // gives each session its own connection
    arguments.SetMaxReceiveMessageSize(proto::kMaxMessageBytes);
    for (uint32_t i = 0; i < load.sessions; ++i) {
      auto session = std::make_unique<Session>();
      session->index = i;
      session->stub = v1::Coordinator::NewStub(
          grpc::CreateCustomChannel(coordinator, grpc::SslCredentials({roots, "", ""}), arguments));
      sessions_.push_back(std::move(session));
    }
  }
  ~Sessions() {
    for (auto& session : sessions_) session->context.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }

  bool failed() const { return failed_; }

  bool join() {
    return run_until([this] {
      while (next_ < load_.sessions && joining_ < kJoiningAtOnce) open(*sessions_[next_++]);
      return committed(1);
    });
  }
  // Declares `tensors` from every session. Returns for each session the seconds from the last session's Declare to the
  // Commit of plan `epoch`. Returns an empty vector on failure.
  std::vector<double> change(const std::vector<plan::Tensor>& tensors, uint32_t epoch) {
    v1::MemberMessage declare;
    for (const plan::Tensor& tensor : tensors) proto::encode(tensor, declare.mutable_declare()->add_tensors());
    for (size_t i = 0; i + 1 < sessions_.size(); ++i) write(*sessions_[i], declare);
    const absl::Time settled = absl::Now() + kSettle;
    run_until([&] { return absl::Now() >= settled && outstanding_writes_ == 0; });
    const absl::Time begin = absl::Now();
    write(*sessions_.back(), declare);
    if (!run_until([&] { return committed(epoch); })) return {};
    std::vector<double> seconds;
    for (const auto& session : sessions_) seconds.push_back(absl::ToDoubleSeconds(session->committed - begin));
    return seconds;
  }

 private:
  bool committed(uint32_t epoch) const { return committed_epoch_ == epoch && committed_count_ == load_.sessions; }

  template <typename Condition>
  bool run_until(Condition condition) {
    const absl::Time end = absl::Now() + kPatience;
    while (!failed_ && !condition()) {
      const absl::Time now = absl::Now();
      if (now > end) return false;
      void* tag = nullptr;
      bool ok = false;
      const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(10);
      if (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
        on_completion(*static_cast<Session::Tag*>(tag), ok);
      }
      if (now - last_beats_ >= kHeartbeatEvery / 10) beat(now);
    }
    return !failed_;
  }

  void open(Session& session) {
    ++joining_;
    session.stream = session.stub->PrepareAsyncJoin(&session.context, &queue_);
    session.stream->StartCall(&session.tags[Session::kStart]);
  }

  void beat(absl::Time now) {
    last_beats_ = now;
    v1::MemberMessage message;
    message.mutable_heartbeat();
    for (const auto& session : sessions_) {
      if (!session->joined || now - session->beat < kHeartbeatEvery) continue;
      session->beat = now;
      write(*session, message);
    }
  }

  void write(Session& session, v1::MemberMessage message) {
    session.writes.push_back(std::move(message));
    ++outstanding_writes_;
    if (!session.writing) write_next(session);
  }
  void write_next(Session& session) {
    session.writing = !session.writes.empty();
    if (session.writing) session.stream->Write(session.writes.front(), &session.tags[Session::kWrite]);
  }

  void on_completion(const Session::Tag& tag, bool ok) {
    Session& session = *tag.session;
    if (!ok) {
      std::fprintf(stderr, "coordinator_scale: the stream of session %u broke\n", session.index);
      failed_ = true;
      return;
    }
    switch (tag.operation) {
      case Session::kRead:
        on_message(session);
        [[fallthrough]];
      case Session::kStart:
        session.stream->Read(&session.incoming, &session.tags[Session::kRead]);
        return;
      case Session::kWrite:
        session.writes.pop_front();
        --outstanding_writes_;
        return write_next(session);
      case Session::kOperations:
        return;
    }
  }

  void on_message(Session& session) {
    const v1::CoordinatorMessage& message = session.incoming;
    v1::MemberMessage answer;
    if (message.has_challenge()) {
      v1::Identity identity;
      identity.set_job(kScaleJob);
      identity.set_role(v1::ROLE_WORKER);
      identity.set_index(session.index);
      identity.set_local_size(1);
      identity.set_address(absl::StrCat("10.", session.index / 250, ".0.", session.index % 250, ":7071"));
      answer.mutable_join()->set_protocol(proto::kProtocol);
      identity.SerializeToString(answer.mutable_join()->mutable_identity());
      answer.mutable_join()->set_nonce(std::string(32, 'n'));
      answer.mutable_join()->set_bearer(std::string(1000, 'b'));
      return write(session, std::move(answer));
    }
    if (message.has_welcome()) {
      --joining_;
      session.joined = true;
      session.beat = absl::Now();
    } else if (message.has_prepare()) {
      // In a real job each member decodes the plan on its own machine. Here one session decodes the plan for all
      // sessions, so that the decoding does not dominate the measurement.
      if (session.index == 0) failed_ |= !proto::decode(message.prepare().plan()).ok();
      answer.mutable_acknowledge()->set_epoch(message.prepare().plan().epoch());
      write(session, std::move(answer));
    } else if (message.has_commit()) {
      session.epoch = message.commit().epoch();
      session.committed = absl::Now();
      if (session.epoch != committed_epoch_) committed_count_ = 0;
      committed_epoch_ = session.epoch;
      ++committed_count_;
    } else if (message.has_failed()) {
      std::fprintf(stderr, "coordinator_scale: %s\n", message.failed().status().message().c_str());
      failed_ = true;
    }
  }

  const Load load_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Session>> sessions_;
  uint32_t next_ = 0;     // the session to open next
  uint32_t joining_ = 0;  // opened sessions without a Welcome
  uint32_t committed_epoch_ = 0;
  uint32_t committed_count_ = 0;  // sessions with the Commit of committed_epoch_
  size_t outstanding_writes_ = 0;
  absl::Time last_beats_;
  bool failed_ = false;
};

nlohmann::ordered_json percentiles(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    return seconds[std::min(seconds.size() - 1, static_cast<size_t>(part * static_cast<double>(seconds.size())))];
  };
  return {{"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}, {"max", seconds.back()}};
}

}  // namespace

int run_sessions(const std::string& coordinator, const std::string& roots_file, const Load& load) {
  std::ifstream file(roots_file);
  std::ostringstream roots;
  roots << file.rdbuf();
  Sessions sessions(coordinator, roots.str(), load);
  const absl::Time begin = absl::Now();
  if (!sessions.join()) return 1;
  nlohmann::ordered_json json;
  json["sessions"] = load.sessions;
  json["tensors"] = load.tensors;
  json["changes"] = load.changes;
  json["join_seconds"] = absl::ToDoubleSeconds(absl::Now() - begin);

  std::vector<plan::Tensor> tensors;
  for (uint32_t i = 0; i < load.tensors; ++i) {
    tensors.push_back({absl::StrCat("layer", i, ".weight"), 160'000, DataType::kFloat32, 0});
  }
  const std::vector<double> first = sessions.change(tensors, 2);
  if (first.empty()) return 1;
  json["first_change_seconds"] = *std::max_element(first.begin(), first.end());
  std::vector<double> last_member, every_member;
  for (uint32_t i = 0; i < load.changes; ++i) {
    const auto took = sessions.change({{absl::StrCat("added", i), 160'000, DataType::kFloat32, 0}}, 3 + i);
    if (took.empty()) return 1;
    last_member.push_back(*std::max_element(took.begin(), took.end()));
    every_member.insert(every_member.end(), took.begin(), took.end());
  }
  json["change_seconds"] = percentiles(last_member);
  json["member_seconds"] = percentiles(every_member);
  std::printf("%s\n", json.dump().c_str());
  return 0;
}

}  // namespace gleaner::bench
