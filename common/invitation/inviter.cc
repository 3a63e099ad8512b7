#include "common/invitation/inviter.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/backoff.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/invitation/handshake.h"
#include "common/proto/grpc_start.h"
#include "common/proto/invitation.grpc.pb.h"
#include "common/proto/proof.h"

namespace gleaner::invitation {
namespace {

constexpr int kConnectMs = 5000;            // of one attempt to connect
constexpr int kAnswerMs = 10'000;           // for the handshake, and for the summer to join
constexpr int kSummerKeepaliveMs = 20'000;  // detects summers whose machine is gone
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Seconds(30);

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kSummerKeepaliveMs);
  // Each stream has a connection of its own, and the HTTP proxy of the environment is for other traffic.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

// Returns whether the next attempt would end in the same way.
bool is_final(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status);
}

// Cancels a stream if its time is over before the object is destroyed.
class TimeLimit {
 public:
  explicit TimeLimit(std::shared_ptr<grpc::ClientContext> stream) {
    const gpr_timespec end = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kAnswerMs, GPR_TIMESPAN));
    alarm_.Set(end, [stream = std::move(stream), is_over = is_over_](bool rang) {
      if (!rang) return;
      *is_over = true;
      stream->TryCancel();
    });
  }
  bool is_over() const { return *is_over_; }

 private:
  const std::shared_ptr<std::atomic<bool>> is_over_ = std::make_shared<std::atomic<bool>>(false);
  grpc::Alarm alarm_;
};

struct Guest {
  Address address;
  bool counts = true;
  std::shared_ptr<grpc::ClientContext> stream;  // null: none is open
  std::thread thread;
};

class Invitations final : public Inviter {
 public:
  Invitations(const Env& env, InviterOptions options, OnCount on_count)
      : env_(env), options_(std::move(options)), on_count_(std::move(on_count)), guests_(options_.summers.size()) {}

  ~Invitations() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      for (const Guest& guest : guests_) {
        if (guest.stream != nullptr) guest.stream->TryCancel();
      }
    }
    for (Guest& guest : guests_) {
      if (guest.thread.joinable()) guest.thread.join();
    }
  }

  absl::Status start() {
    GLN_RETURN_IF_ERROR(proto::start_grpc(proto::channel_threads(), "the invitations of summers"));
    for (size_t i = 0; i < guests_.size(); ++i) guests_[i].address = options_.summers[i];
    for (Guest& guest : guests_) {
      GLN_ASSIGN_OR_RETURN(guest.thread, start_thread("gln-invite", [this, &guest] { run(guest); }));
    }
    return absl::OkStatus();
  }

 private:
  void run(Guest& guest) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status invite(Guest& guest, bool& joined) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status talk(Guest& guest, grpc::ClientReaderWriter<v1::Invite, v1::InviteAnswer>& stream,
                    const std::shared_ptr<grpc::ClientContext>& context, bool& joined);
  void count(Guest& guest, bool counts) ABSL_LOCKS_EXCLUDED(counting_, mutex_);

  const Env env_;
  const InviterOptions options_;
  const OnCount on_count_;
  absl::Mutex counting_ ABSL_ACQUIRED_BEFORE(mutex_);  // held while on_count_ is called
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Guest> guests_;  // `counts` and `stream` are guarded by mutex_
};

// Invites a summer until it has served the job to its end, or will never serve it.
void Invitations::run(Guest& guest) {
  Backoff backoff(*env_.random, kFirstPause, kLongestPause);
  const std::string address = guest.address.to_string();
  std::string told;
  while (true) {
    bool joined = false;
    const absl::Status ended = invite(guest, joined);
    if (joined) {
      backoff.reset();
      told.clear();
    }
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    if (ended.ok()) return;
    if (told != ended.message()) {
      told = std::string(ended.message());
      env_.log->warning("the job goes on without an invited summer", "address", address, "reason", told,
                        "invited again", is_final(ended) ? "no" : "yes");
    }
    count(guest, false);
    if (is_final(ended)) return;
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), backoff.next())) return;
  }
}

// Returns how the summer has ended the stream, or why this inviter has. `joined`: the summer had joined the job.
absl::Status Invitations::invite(Guest& guest, bool& joined) {
  const auto context = std::make_shared<grpc::ClientContext>();
  const auto stub = v1::WaitingSummer::NewStub(
      grpc::CreateCustomChannel(guest.address.to_string(), grpc::InsecureChannelCredentials(), channel_arguments()));
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("the job has ended");
    guest.stream = context;
  }
  const auto stream = stub->Serve(context.get());
  const absl::Status status = talk(guest, *stream, context, joined);
  if (!status.ok()) context->TryCancel();
  const grpc::Status end = stream->Finish();
  {
    absl::MutexLock lock(&mutex_);
    guest.stream = nullptr;
  }
  if (!status.ok()) return status;
  if (end.ok() && !joined) return absl::UnavailableError("it ended the stream before it had joined");
  return {static_cast<absl::StatusCode>(end.error_code()), end.error_message()};
}

// Returns OK once the stream has ended, whose status then tells why. An error: this inviter is to end the stream.
absl::Status Invitations::talk(Guest& guest, grpc::ClientReaderWriter<v1::Invite, v1::InviteAnswer>& stream,
                               const std::shared_ptr<grpc::ClientContext>& context, bool& joined) {
  Invitation invitation = options_.invitation;
  invitation.summer = guest.address.host;
  std::string nonce(proto::kNonceBytes, '\0');
  GLN_RETURN_IF_ERROR(env_.random->fill({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()}));
  InviterHandshake handshake(invitation, options_.token, std::move(nonce));
  std::optional<TimeLimit> limit(context);
  bool accepted = false;
  v1::InviteAnswer answer;
  while (stream.Read(&answer)) {
    if (answer.has_challenge()) {
      GLN_ASSIGN_OR_RETURN(const v1::Invite invite, handshake.answer(answer.challenge()));
      stream.Write(invite);
    } else if (answer.has_accepted()) {
      GLN_RETURN_IF_ERROR(handshake.check(answer.accepted()));
      accepted = true;
      count(guest, true);
      limit.emplace(context);
    } else if (answer.has_joined() && accepted) {
      limit.reset();
      joined = true;
      env_.log->info("an invited summer has joined", "address", guest.address.to_string());
    }
  }
  if (!limit.has_value() || !limit->is_over()) return absl::OkStatus();
  if (!accepted) return absl::DeadlineExceededError("it does not answer in time; is it a summer that waits for jobs?");
  return absl::DeadlineExceededError(absl::StrCat("it has not joined in time; can it reach the coordinator at ",
                                                  invitation.coordinator.to_string(), "?"));
}

void Invitations::count(Guest& guest, bool counts) {
  absl::MutexLock counting(&counting_);
  uint32_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(guest.counts, counts) == counts) return;
    for (const Guest& each : guests_) number += each.counts ? 1 : 0;
  }
  on_count_(number);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Inviter>> Inviter::start(const Env& env, InviterOptions options, OnCount on_count) {
  auto inviter = std::make_unique<Invitations>(env, std::move(options), std::move(on_count));
  GLN_RETURN_IF_ERROR(inviter->start());
  return inviter;
}

}  // namespace gleaner::invitation
