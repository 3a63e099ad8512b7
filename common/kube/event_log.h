// EventLog decides which Events are written, and counts how often each happened. Pure: times come in, objects go out.
//
// A *series* is all records with the same object, type, reason and message, each within kWindow of the previous one. A
// series is one Event with a count.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/kube/client.h"

namespace gleaner::kube {

struct ObjectReference {
  std::string api_version, kind, ns, name, uid;
};

class EventLog {
 public:
  struct Times {
    absl::Duration monotonic;
    absl::Time wall;
  };
  struct Write {
    std::string series;  // key of the series, for failed()
    Object event;        // the complete Event, so that applying it twice has the effect of once
  };

  EventLog(std::string component, std::string instance)
      : component_(std::move(component)), instance_(std::move(instance)) {}

  void record(const Times& now, const ObjectReference& object, absl::string_view type, absl::string_view reason,
              absl::string_view message);

  // Returns the Event that has waited longest among those that may be written now. A series is written at most once per
  // kRewrite, or without delay if `flushing`. An Event is not returned again unless failed() is called or the series
  // gets a new record.
  std::optional<Write> next(absl::Duration now, bool flushing);
  // Takes back an Event that could not be written, unless a newer one of its series waits.
  void failed(const Write& write);

  size_t waiting() const { return waiting_.size(); }  // number of series with an Event to write

  static constexpr size_t kMaxWaiting = 1000;  // beyond this the oldest waiting Event is dropped
  static constexpr absl::Duration kWindow = absl::Minutes(10);
  static constexpr absl::Duration kRewrite = absl::Seconds(1);

 private:
  struct Series {
    absl::Time first;
    absl::Duration last;
    uint64_t count = 0;
    absl::Duration not_before;
    Object event;  // the Event to write; null: none
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
