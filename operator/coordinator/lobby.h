// The members that wait for the next round of an elastic job, and when that round begins. Pure; belongs to Rounds.
//
// A round begins once all workers of the last round that are to come back are here. It takes up to max_workers of the
// workers that are here: first those of the last round, in their order, then others by index. After regroup_timeout it
// begins without workers that did not come back. With fewer than min_workers it does not begin, and after start_timeout
// the job fails. A worker that has ended well counts towards min_workers, so that the workers left can end the training
// alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "operator/coordinator/options.h"
#include "operator/coordinator/roster.h"

namespace gleaner::coordinator {

class Lobby {
 public:
  struct Guest {
    StreamId stream = 0;
    Identity identity;
  };
  // Who a round begins with, in order; every identity has an index.
  struct Party {
    std::vector<Guest> workers, summers;
  };

  // Waits for the first round from `now` on.
  Lobby(const Options& options, absl::Duration now);

  // Somebody wants in. InvalidArgument: an identity that can't be right; Unavailable: somebody of that index is here.
  absl::Status enter(StreamId stream, const Identity& identity);
  // Whether that stream was somebody's who waits here; then nobody waits for that one.
  bool leave(StreamId stream);

  // A round has ended: the next waits for these workers, in this order, and for a while for so many summers. `done`: of
  // its workers, those that ended well.
  void gather(std::vector<uint32_t> workers, uint32_t summers, uint32_t done, absl::Duration now);
  // It won't come.
  void give_up(uint32_t worker);

  // Who the next round begins with, when it is time; they are not here any more.
  std::optional<Party> take(absl::Duration now);
  // The warning that is due at `now`, if any: whom the next round waits for, and since when. The first is due once
  // members have waited here for kStallAfter; each later one is due kMissingEvery after the one before.
  std::optional<std::string> warning(absl::Duration now);
  // Why no round can begin any more.
  absl::Status hopeless(absl::Duration now) const;
  // All summers that wait, or everybody.
  std::vector<Guest> take_summers();
  std::vector<Guest> take_all();

  std::vector<StreamId> streams() const;
  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }

 private:
  bool is_expected(uint32_t worker) const;
  std::vector<uint32_t> missing() const;  // expected workers that are not here, in order
  uint32_t least() const;
  std::string waits_for() const;

  const Options options_;
  absl::flat_hash_map<uint32_t, Guest> workers_;  // by index
  std::vector<Guest> summers_;
  std::vector<uint32_t> expected_;  // workers of the last round
  uint32_t first_ = 0;              // as many as the first round waits for; later 0
  uint32_t expected_summers_ = 0;
  uint32_t done_ = 0;
  absl::Duration since_;
  std::optional<absl::Duration> workers_here_;  // since when only summers are missing
  absl::Duration next_warning_;
};

}  // namespace gleaner::coordinator
