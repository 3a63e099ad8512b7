// Causes: the losses after which a job may end with an error. The error has to name one of them, and has to come in
// time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/protocol_sim/event_queue.h"
#include "tests/protocol_sim/report.h"

namespace gleaner::sim {

class Causes {
 public:
  // Time that an error takes beside the timeouts of the protocol: pauses of members, trips of messages, ticks, and the
  // 4 seconds by which the reports of the fault "slow" are ahead.
  static constexpr Nanoseconds kSlack = 5500 * kMillisecond;

  // Until `until`, and kSlack longer, members may end with an error that contains `name`. A number at
  // its end has to end there, so that the name of worker 1 does not count as that of worker 10. If the error says that
  // a member is lost, that member has to be the one with this name.
  void add(std::string name, Nanoseconds until);
  // Fails the report unless `error`, with which a member ends at the time `now`, names a cause in time.
  void check(absl::string_view member, const absl::Status& error, Nanoseconds now, Report& report) const;

 private:
  struct Cause {
    std::string name;
    Nanoseconds until = 0;
  };
  std::vector<Cause> causes_;
};

}  // namespace gleaner::sim
