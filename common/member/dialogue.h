// Implements Client on a thread of its own ("gln-coord"): connects a Membership with its stream, its listener and its
// log.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/mailbox.h"
#include "common/member/client.h"
#include "common/member/introduction.h"
#include "common/member/membership.h"
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
  void saw(uint32_t epoch, bool by_rank) override;
  void send_trace(uint64_t recording, trace::Recording what) override;
  bool leave(const absl::Status& status, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool come_again(const absl::Status& status, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  void stop() override;

 private:
  bool leave_now(const absl::Status& status, bool again, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration now() const { return env_.clock->since_start(); }

  void run();
  void on_message(const v1::CoordinatorMessage& message);
  void on_message_from_inside(const v1::CoordinatorMessage& message);
  void on_welcome(const v1::Welcome& welcome);
  void on_prepare(const v1::Plan& message);
  void on_trace(const v1::Trace& message);
  void on_closed(const absl::Status& status);

  void carry_out();
  void act(const Saying& what);
  void act(const Connect&);
  void act(const Disconnect&);
  void act(const Introduce& what);
  void act(const Welcome& what) { listener_->on_welcome(what); }
  void act(const Prepared& what) { listener_->on_prepare(what.plan); }
  void act(const Committed& what) { listener_->on_commit(what.epoch); }
  void act(const Failed& what) { listener_->on_failed(what.status); }
  void act(const Regroup& what) { listener_->on_regroup(what.status); }
  void act(const Finished&) { listener_->on_finished(); }
  void act(const CoordinatorLost&) { listener_->on_coordinator_lost(); }
  void act(const CoordinatorGone& what) { listener_->on_coordinator_gone(what.why); }
  void act(const CoordinatorFound&) { listener_->on_coordinator_found(); }
  void act(const Left&) ABSL_LOCKS_EXCLUDED(mutex_);
  void act(const Stays&) ABSL_LOCKS_EXCLUDED(mutex_);
  void act(const Note& what);

  const Env env_;
  const JoinOptions options_;
  Listener* const listener_;

  // The thread's.
  Introduction introduction_;
  v1::Challenge challenge_;
  Stream stream_;
  Membership membership_;
  bool dropped_ = false;       // the open call is cancelled; what still comes from it does not count
  bool connect_next_ = false;  // once that call has ended

  absl::Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool stays_ ABSL_GUARDED_BY(mutex_) = false;  // a plan came while it was leaving

  std::atomic<bool> stopping_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace gleaner::member
