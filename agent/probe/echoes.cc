#include "agent/probe/echoes.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"

namespace gleaner::probe {

absl::StatusOr<absl::Duration> usual_answer_time(const Socket& socket, const Clock& clock, absl::Duration deadline) {
  const absl::Duration begin = clock.since_start();
  std::vector<absl::Duration> times;
  Echo echo;
  for (uint8_t count = 1; echo.is_last == 0; ++count) {
    const absl::Duration sent = clock.since_start();
    const bool is_late = count >= kLeastEchoes && sent - begin >= kEchoTime;
    echo = {static_cast<uint8_t>(is_late || count == kMostEchoes), static_cast<uint8_t>(count - 1)};
    GLN_RETURN_IF_ERROR(socket.write(&echo, sizeof(echo), clock, deadline));
    Echo answer;
    GLN_RETURN_IF_ERROR(socket.read(&answer, sizeof(answer), clock, deadline));
    times.push_back(clock.since_start() - sent);
    if (answer != echo) {
      return absl::UnavailableError(absl::StrCat("the answer to echo ", echo.number, " has the wrong bytes: number ",
                                                 answer.number, ", last ", answer.is_last,
                                                 "; check that the peer is a gleaner of this version"));
    }
  }
  return lower_quartile(std::move(times));
}

absl::Status answer_echoes(const Socket& socket, const Clock& clock, absl::Duration deadline) {
  Echo echo;
  for (uint8_t number = 0; echo.is_last == 0; ++number) {
    GLN_RETURN_IF_ERROR(socket.read(&echo, sizeof(echo), clock, deadline));
    if (number == kMostEchoes || echo.number != number || echo.is_last > 1) {
      return absl::InvalidArgumentError(absl::StrCat("expected echo ", number, " of ", kMostEchoes,
                                                     " at most, not number ", echo.number, ", last ", echo.is_last,
                                                     "; check that the client is a gleaner of this version"));
    }
    GLN_RETURN_IF_ERROR(socket.write(&echo, sizeof(echo), clock, deadline));
  }
  return absl::OkStatus();
}

}  // namespace gleaner::probe
