// Supervises a worker's connections to the owners of the plan in force: decides when each is dialed, and when an owner
// counts as lost. Pure: events in, actions out. No I/O, no clock, no thread.
//
// A *path* is the way to the member in one place of the plan, over any number of connections one after the other. A
// path makes *progress* when a new sum arrives over it, or when the peer has shown that everything sent over its
// connection has arrived. From the time at which a connection breaks, or the member enters the plan, until the next
// progress the path is *in doubt*: a connection that comes up proves nothing, since it may break again with the first
// large frame. Time in doubt while the member is *needed* is *spent*, whether a connection is up or not. A path that is
// not connected and has spent its limit is lost:
// - Another worker's summer is needed while sums are due from it. Its limit is the job's deadline; its loss ends the
//   job.
// - A CPU summer is needed until a worker has left the job, and can be left out of the next plan. Its limit is
//   summer_timeout while sums are due from it. If none are due, other workers may still wait for it in vain: without
//   this worker's contribution it makes no sum and takes over no partition. Then the limit is idle_timeout.
//
//   dial ──on_connected()──▶ up, in doubt ──on_progress()──▶ up ──on_closed()──▶ down, in doubt ──pause──▶ dial
//
// A connection that its transport closed for the peer's silence (DeadlineExceeded) has spent the limit: transports are
// told to be as patient as the limit is. Pauses between connections double from first_pause to longest_pause, and fall
// back with progress only. A tick that comes late counts as a quarter of the limit at most: while this process stood
// still, it read no frames.
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
  absl::Duration deadline = absl::Seconds(10);              // limit of other workers' summers; the job's
  absl::Duration summer_timeout = absl::Milliseconds(500);  // limit of CPU summers from which sums are due
  absl::Duration idle_timeout = absl::Seconds(2);           // limit of others
  absl::Duration first_pause = absl::Milliseconds(20);      // before the next connection
  absl::Duration longest_pause = absl::Seconds(1);          // the same
  absl::Duration first_warning = absl::Seconds(1);          // of spent time
  absl::Duration warn_every = absl::Seconds(5);             // after the first
};

struct Drop {
  uint32_t member = 0;
  bool was_up = false;
};

struct Loss {
  uint32_t member = 0;
  bool ends_job = false;  // nobody can take over what it sums
  absl::Duration since;   // when the time that it has spent began
  absl::Status why;       // names the member where that ends the job
};

struct Warning {
  uint32_t member = 0;
  std::string what;
  absl::Status last;  // why the last connection ended
};

// Filled by the supervisor, emptied and reused by the caller.
struct Actions {
  std::vector<Drop> drops;       // connections to be closed: another member has, or nobody has, that place now
  std::vector<uint32_t> dials;   // members to be connected to; on_connected(), on_dial_failed() or on_closed() follows
  std::vector<Loss> losses;      // each once, until the path makes progress, or the member changes or isn't needed
  std::vector<uint32_t> healed;  // members that were lost, and are not any more
  std::vector<Warning> warnings;

  void clear();
};

class Supervisor {
 public:
  explicit Supervisor(const Options& options) : options_(options) {}

  // This plan is in force. Connections are kept to members that stay.
  void follow(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions);

  // The connection could not even be begun. FailedPrecondition: it never can, so that the owner is lost at once.
  void on_dial_failed(uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_connected(uint32_t member);
  // A connection that was dialed, whether it came up or not, has ended.
  void on_closed(uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_progress(uint32_t member, Actions& actions) {
    if (paths_[member].doubted) clear_doubt(paths_[member], actions);
  }
  // Every few milliseconds. `due`: the members from which sums are due; not looked at where is_calm().
  void tick(absl::Duration now, absl::Span<const uint32_t> due, Actions& actions);
  // A worker has left the job well: nobody waits for summers any more, but this worker for what is due from them.
  void set_ending() { ending_ = true; }

  bool is_up(uint32_t member) const { return paths_[member].phase == Phase::kUp; }
  bool is_doubted(uint32_t member) const { return paths_[member].doubted; }
  bool is_here(uint32_t member) const { return paths_[member].here; }
  const absl::Status& last(uint32_t member) const { return paths_[member].last; }  // why there is no connection
  uint32_t members() const { return static_cast<uint32_t>(paths_.size()); }
  bool all_up() const;   // to everybody who is here
  bool is_calm() const;  // all up, and none in doubt

 private:
  enum class Phase { kDown, kDialing, kUp };
  struct Path {
    uint32_t member = 0;
    bool here = false;   // the plan has somebody in this place
    uint32_t since = 0;  // who it is
    Phase phase = Phase::kDown;
    bool doubted = true;
    bool reported = false;  // as lost
    uint32_t broken = 0;    // connections that came up and ended, since the last progress
    absl::Duration spent;
    absl::Duration retry_at;
    absl::Duration pause;
    absl::Duration warn_at;  // of `spent`
    absl::Status last = absl::UnavailableError("not connected yet");
    BreakCounter breaks;
  };

  bool is_cpu_summer(const Path& path) const { return path.member >= plan_->workers; }
  absl::Duration limit(const Path& path, bool due) const {
    if (!is_cpu_summer(path)) return options_.deadline;
    return due ? options_.summer_timeout : options_.idle_timeout;
  }
  void retry_later(Path& path, absl::Duration now) const;
  void clear_doubt(Path& path, Actions& actions) const;
  void forget_spent(Path& path, Actions& actions) const;
  void spend(Path& path, bool due, absl::Duration elapsed, absl::Duration now, Actions& actions) const;
  void report_lost(Path& path, const absl::Status& why, absl::Duration now, Actions& actions) const;
  std::string describe_loss(const Path& path, absl::Duration limit) const;

  const Options options_;
  std::shared_ptr<const plan::Plan> plan_;
  std::deque<Path> paths_;  // by member
  absl::Duration last_tick_;
  bool ending_ = false;
};

}  // namespace gleaner::supervision
