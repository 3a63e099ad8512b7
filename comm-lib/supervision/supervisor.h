// Supervisor supervises a worker's connections to the owners of the plan in force: it decides when to dial each owner,
// and when an owner is lost. Pure: events in, actions out. It does no I/O, reads no clock and starts no thread.
//
// Paths. A *path* leads to the member in one place of the plan, over any number of connections, one after the other. A
// path makes *progress* when a new result arrives over it, or when the peer has confirmed that all frames sent over its
// connection have arrived. A path is *in doubt* from the time at which its connection breaks, or the member enters the
// plan, until its next progress. A new connection alone is no progress, since it may break with the first large frame.
//
// Losses. While the member is *needed*, the time in doubt is *spent*, whether a connection is up or not. A path that is
// not connected and has spent its limit is lost:
// - Another worker's summer is needed while results are due from it. Its limit is the job's deadline. Its loss ends the
//   job.
// - A CPU summer is always needed until a worker has left the job, and then only while results are due from it. Its
//   limit is summer_timeout while results are due from it, and idle_timeout otherwise: without this worker's
//   contribution the summer makes no sum and takes over no partition, so other workers may wait for it. The next plan
//   can leave the summer out.
// While there is no coordinator, nobody tells that a worker is lost, and no sum is made without its contribution.
// Another worker is then also needed while results are due from any member and none arrive, unless a worker from which
// they are due is out of reach itself: others may have left. Its limit is plan_timeout if a coordinator may return, and
// the deadline otherwise.
//
//   dial ──on_connected()──▶ up, in doubt ──on_progress()──▶ up ──on_closed()──▶ down, in doubt ──pause──▶ dial
//
// A connection that its transport closed because the peer was silent (DeadlineExceeded) has spent the limit of a member
// from which results are due, since its transport waited at least that long (transport::KeepAlive). Pauses between
// connections double from first_pause to longest_pause; progress resets them. If tick() comes late, at most a quarter
// of the limit counts, since the process may have been paused and have read no frames meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/break_counter.h"
#include "common/plan/plan.h"

namespace gleaner::supervision {

struct Options {
  absl::Duration deadline = absl::Seconds(10);              // the job's: limit of other workers' summers
  absl::Duration plan_timeout = absl::Minutes(10);          // the same without a coordinator, if one may return
  absl::Duration summer_timeout = absl::Milliseconds(500);  // limit of CPU summers from which results are due
  absl::Duration idle_timeout = absl::Seconds(2);           // limit of other CPU summers
  absl::Duration first_pause = absl::Milliseconds(20);      // before the next connection; it doubles each time
  absl::Duration longest_pause = absl::Seconds(1);          // limit of that pause
  absl::Duration first_warning = absl::Seconds(1);          // the first warning comes after this much spent time
  absl::Duration warn_every = absl::Seconds(5);             // each further warning comes after this much more
};

// A connection to close, because the place is empty or another member has taken it.
struct Drop {
  uint32_t member = 0;
  bool was_up = false;
};

// A path that is lost.
struct Loss {
  uint32_t member = 0;
  bool ends_job = false;  // true: no other member can take over the member's partitions
  absl::Duration since;   // time of the loss minus the time spent
  absl::Status why;       // names the member if ends_job
};

struct Warning {
  uint32_t member = 0;
  std::string what;
  absl::Status last;  // why the last connection ended
};

// Actions for the caller. The supervisor appends to it; the caller carries it out, clears it and passes it again.
struct Actions {
  std::vector<Drop> drops;
  // Members to connect to. The caller answers each by on_connected(), on_dial_failed() or on_closed().
  std::vector<uint32_t> dials;
  // Contains a lost path only once, until the path makes progress, its member changes, or the member is not needed.
  std::vector<Loss> losses;
  std::vector<uint32_t> healed;  // members that are no longer lost
  std::vector<Warning> warnings;

  void clear();
};

class Supervisor {
 public:
  explicit Supervisor(const Options& options) : options_(options) {}

  // Brings `plan` into force. Connections to members that stay are kept.
  void follow(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions);

  // Records that no connection could be begun. FailedPrecondition means that none is ever possible, so the member is
  // lost immediately.
  void on_dial_failed(uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_connected(uint32_t member);
  // Records that a dialed connection has ended, whether it came up or not.
  void on_closed(uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_progress(uint32_t member, Actions& actions) {
    if (paths_[member].doubted) clear_doubt(paths_[member], actions);
  }
  // Records that a result has arrived over any path.
  void on_result() { has_result_ = true; }
  // To be called every few milliseconds. `due`: the members from which results are due; ignored if all_settled().
  void tick(absl::Duration now, absl::Span<const uint32_t> due, Actions& actions);
  // Records that a worker has left the job cleanly. From then on a summer is needed only while results are due from it.
  void set_ending() { ending_ = true; }
  void on_coordinator_lost() { coordinator_ = Coordinator::kAway; }
  void on_coordinator_found() { coordinator_ = Coordinator::kThere; }
  // Records that the coordinator is lost, and that no other will replace it.
  void on_coordinator_gone() { coordinator_ = Coordinator::kGone; }

  bool is_up(uint32_t member) const { return paths_[member].phase == Phase::kUp; }
  bool is_doubted(uint32_t member) const { return paths_[member].doubted; }
  bool is_member(uint32_t member) const { return paths_[member].is_member; }
  // Returns the reason for which the last connection to the member ended or failed.
  const absl::Status& last(uint32_t member) const { return paths_[member].last; }
  uint32_t members() const { return static_cast<uint32_t>(paths_.size()); }
  bool all_up() const;       // connections to all members of the plan are up
  bool all_settled() const;  // all are up, and no path is in doubt

 private:
  enum class Phase { kDown, kDialing, kUp };
  enum class Coordinator { kThere, kAway, kGone };
  struct Path {
    uint32_t member = 0;
    bool is_member = false;  // the plan has a member in this place
    uint32_t since = 0;      // Member::since, which distinguishes the member from an earlier one in this place
    Phase phase = Phase::kDown;
    bool doubted = true;
    bool reported = false;                 // reported as lost
    uint32_t breaks_without_progress = 0;  // number of connections that came up and ended since the last progress
    absl::Duration spent;
    absl::Duration retry_at;
    absl::Duration pause;
    absl::Duration warn_at;  // value of `spent` at which to warn
    absl::Status last = absl::UnavailableError("not connected yet");
    BreakCounter breaks;
  };

  bool is_cpu_summer(const Path& path) const { return path.member >= plan_->workers; }
  absl::Duration limit(const Path& path, bool due) const {
    if (!is_cpu_summer(path)) {
      return due || coordinator_ != Coordinator::kAway ? options_.deadline : options_.plan_timeout;
    }
    return due ? options_.summer_timeout : options_.idle_timeout;
  }
  void retry_later(Path& path, absl::Duration now) const;
  void clear_doubt(Path& path, Actions& actions) const;
  void forget_spent(Path& path, Actions& actions) const;
  bool is_due_worker_down(absl::Span<const uint32_t> due) const;
  void spend(Path& path, bool due, absl::Duration elapsed, absl::Duration now, Actions& actions) const;
  void report_lost(Path& path, const absl::Status& why, absl::Duration now, Actions& actions) const;
  std::string describe_loss(const Path& path, bool due, absl::Duration limit) const;

  const Options options_;
  std::shared_ptr<const plan::Plan> plan_;
  std::deque<Path> paths_;  // by member
  absl::Duration last_tick_;
  bool ending_ = false;
  Coordinator coordinator_ = Coordinator::kThere;
  bool has_result_ = false;  // a result has arrived since the last tick
};

}  // namespace gleaner::supervision
