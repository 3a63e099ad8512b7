// Which Events are to be written, and how often each of them happened. Pure: times come in, objects go out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/kube/client.h"
#include "common/kube/events.h"

namespace gleaner::kube {

class EventLog {
 public:
  struct Times {
    absl::Duration monotonic;
    absl::Time wall;
  };
  struct Write {
    std::string series;  // for written() and failed()
    Object event;        // whole, so that applying it twice is applying it once
  };

  EventLog(std::string component, std::string instance)
      : component_(std::move(component)), instance_(std::move(instance)) {}

  void record(const Times& now, const ObjectReference& object, absl::string_view type, absl::string_view reason,
              absl::string_view message);

  // The oldest that may be written now; a series is written once a second at most, or at once when `flushing`. Until
  // written() or failed() it is not given out again.
  std::optional<Write> next(absl::Duration now, bool flushing);
  void failed(const Write& write);  // to be written again, with what has come meanwhile

  size_t waiting() const { return waiting_.size(); }

  static constexpr size_t kMaxWaiting = 1000;  // the oldest are dropped
  static constexpr absl::Duration kWindow = absl::Minutes(10);
  static constexpr absl::Duration kRewrite = absl::Seconds(1);

 private:
  struct Series {
    absl::Time first;
    absl::Duration last;
    uint64_t count = 0;
    absl::Duration not_before;
    Object event;  // what is to be written; null: all is
  };
  void wait(const std::string& series);
  void forget_old(absl::Duration now);

  const std::string component_;
  const std::string instance_;
  std::map<std::string, Series> series_;
  std::deque<std::string> waiting_;
  absl::Duration next_cleaning_;
};

}  // namespace gleaner::kube
