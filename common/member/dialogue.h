// The member's side of the stream: what Client promises, on a thread of its own ("gln-coord").
//
// A coordinator that is not there yet is tried again until the timeout. Once the first plan is committed, losing the
// coordinator does not end the job: what is planned goes on, and only tensors that no plan has yet make it fail.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/base/mailbox.h"
#include "common/member/client.h"
#include "common/member/stream.h"

namespace gleaner::member {

class Dialogue final : public Client {
 public:
  Dialogue(const Env& env, const JoinOptions& options, Listener* listener);
  ~Dialogue() override;

  absl::Status begin();  // once, before all others

  void declare(const std::vector<plan::Tensor>& tensors) override;
  void acknowledge(uint32_t epoch) override;
  void refuse(uint32_t epoch, const absl::Status& why) override;
  void report(const Report& report) override;
  void fault(uint32_t member, const absl::Status& why) override;
  void leave(const absl::Status& status, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  void stop() override;

 private:
  enum class Phase {
    kConnecting,  // no word from the coordinator yet
    kJoining,     // it has our Join
    kJoined,      // it let us in
    kStarted,     // the first plan is committed
    kAlone,       // the coordinator was lost after that
    kOver,        // the last callback was made, or we left
  };

  void run();
  absl::Duration patience() const;
  void on_message(const v1::CoordinatorMessage& message);
  void on_challenge(const v1::Challenge& challenge);
  void on_welcome(const v1::Welcome& welcome);
  void on_prepare(const v1::Plan& message);
  void on_commit(uint32_t epoch);
  void on_closed(const absl::Status& status);
  void tick();
  void on_lost(const absl::Status& why);
  void fail(const absl::Status& status);
  void over() ABSL_LOCKS_EXCLUDED(mutex_);
  void send(v1::MemberMessage message);
  void send_report();
  void note_declared(const std::vector<plan::Tensor>& tensors);
  void check_alone();

  const Env env_;
  const JoinOptions options_;
  Listener* const listener_;
  std::string nonce_;

  // The thread's.
  Stream stream_;
  Phase phase_ = Phase::kConnecting;
  absl::Duration started_;
  absl::Duration retry_at_;
  absl::Duration last_heard_;
  absl::Duration last_sent_;
  absl::Status last_failure_;                 // of connecting
  absl::Duration deadline_;                   // Welcome's
  std::string challenge_;                     // the coordinator's nonce
  std::vector<v1::MemberMessage> held_back_;  // until we are in
  std::shared_ptr<const plan::Plan> prepared_;
  absl::flat_hash_map<std::string, bool> declared_;  // by name; true: in a committed plan
  size_t unplanned_ = 0;                             // of those
  Report report_;
  bool report_due_ = false;
  bool leaving_ = false;

  absl::Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;

  std::atomic<bool> stopping_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace gleaner::member
