// The member's side of the stream: what Client promises, on a thread of its own ("gln-coord").
//
// A coordinator that is not there, yet or any more, is tried again: until the timeout before the first plan is
// committed, for as long as it takes afterwards. Meanwhile what is planned goes on; tensors that no plan has yet wait.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/base/mailbox.h"
#include "common/member/client.h"
#include "common/member/introduction.h"
#include "common/member/stream.h"

namespace gleaner::member {

class Dialogue final : public Client {
 public:
  Dialogue(const Env& env, const JoinOptions& options, Listener* listener);
  ~Dialogue() override;

  absl::Status begin();  // once, before all others

  using Client::declare;
  void declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) override;
  void acknowledge(uint32_t epoch) override;
  void refuse(uint32_t epoch, const absl::Status& why) override;
  void report(const Report& report) override;
  void begun(const std::string& tensor, uint64_t push_pulls) override;
  void fault(uint32_t member, const absl::Status& why) override;
  void send_trace(uint64_t recording, trace::Recording what) override;
  bool leave(const absl::Status& status, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool come_again(const absl::Status& status, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  void stop() override;

 private:
  enum class Phase {
    kConnecting,  // no word from the coordinator yet, or any more
    kJoining,     // it has our Join
    kIn,          // it let us in
    kRegroup,     // the round is over; the stream shows that we are still there, until we leave
    kAlone,       // after the first commit: it is lost, and none will take its place
    kOver,        // the last callback was made, or we left
  };

  void run();
  absl::Duration patience() const;
  bool has_begun() const { return committed_ != nullptr; }
  // Whoever leaves well may be needed until it is gone.
  bool follows_plans() const { return leave_status_.ok(); }

  // Finding the coordinator, and finding it again.
  void connect();
  void retry_later();
  void drop_connection();
  void on_closed(const absl::Status& status);
  void on_attempt_failed(const absl::Status& status);
  void on_lost(const absl::Status& why);
  void be_alone(const absl::Status& why);
  void on_challenge(const v1::Challenge& challenge);
  void on_welcome(const v1::Welcome& welcome);
  void come_in(const v1::Welcome& welcome, const Welcome& told);
  void tick_connecting(absl::Duration now);

  void on_message(const v1::CoordinatorMessage& message);
  void on_prepare(const v1::Plan& message);
  void on_commit(uint32_t epoch);
  void on_trace(const v1::Trace& message);
  void tick();
  void fail(const absl::Status& status);
  void regroup(const absl::Status& status);
  bool leave_now(const absl::Status& status, bool again, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  void over() ABSL_LOCKS_EXCLUDED(mutex_);
  void send(v1::MemberMessage message);
  void send_report();
  void send_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations);
  void send_leave();
  void send_recalled();
  void note_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations);
  void check_alone();

  const Env env_;
  const JoinOptions options_;
  const absl::Duration heartbeat_every_;
  Listener* const listener_;

  // The thread's.
  Introduction introduction_;
  Stream stream_;
  Phase phase_ = Phase::kConnecting;
  absl::Duration started_;
  absl::Duration retry_at_;
  absl::Duration pause_;
  absl::Duration attempted_;  // when the connection was begun
  absl::Duration last_heard_;
  absl::Duration last_sent_;
  bool dropped_ = false;                      // the open call is cancelled; what still comes from it does not count
  absl::Status last_failure_;                 // of connecting
  std::optional<absl::Duration> away_since_;  // after the first commit
  std::optional<Welcome> told_;               // what the listener was
  std::string session_;
  uint64_t term_ = 0;                         // highest of any coordinator that has welcomed us
  std::vector<v1::MemberMessage> held_back_;  // until we are in
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> committed_;
  absl::flat_hash_map<std::string, bool> declared_;    // by name; true: in a committed plan
  std::vector<plan::Tensor> unplanned_;                // those that are not, in order
  std::vector<plan::Operation> unplanned_operations_;  // of these
  absl::Duration unplanned_since_;
  Report report_;
  bool report_due_ = false;
  bool leaving_ = false;
  bool again_ = false;  // and come again
  absl::Status leave_status_;

  absl::Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool stays_ ABSL_GUARDED_BY(mutex_) = false;  // a plan came while it was leaving

  std::atomic<bool> stopping_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace gleaner::member
