// EventRecorder writes Events, which users read in `kubectl describe`. A repeated record with the same object, type,
// reason and message within ten minutes increments the count of the existing Event. The name of an Event is derived
// from these fields, so two writes have the effect of one.
//
// Calls return without a wait. A thread of the recorder, "gln-events", writes, at most once per second for the same
// Event. While the server can't be reached, the recorder keeps the newest 1,000 Events. It needs permission to create
// and patch events.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/event_log.h"

namespace gleaner::kube {

class EventRecorder {
 public:
  static std::unique_ptr<EventRecorder> start(const Env& env, Client& client, const std::string& component,
                                              const std::string& instance);
  virtual ~EventRecorder() = default;  // writes the remaining Events, for at most 2 s
  virtual void normal(const ObjectReference& object, absl::string_view reason, absl::string_view message) = 0;
  virtual void warning(const ObjectReference& object, absl::string_view reason, absl::string_view message) = 0;
};

}  // namespace gleaner::kube
