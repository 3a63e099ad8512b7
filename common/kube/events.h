// Events: what users read in `kubectl describe`. The same (object, type, reason, message) again raises a count instead
// of making another one, within ten minutes; names are derived from that, so that a write done twice is done once.
//
// Calls return at once; a thread of its own ("gln-events") writes, the same Event once a second at most. When the
// server is away the newest 1,000 are kept. Needs create and patch of events.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/env.h"
#include "common/kube/client.h"

namespace gleaner::kube {

struct ObjectReference {
  std::string api_version, kind, ns, name, uid;
};

class EventRecorder {
 public:
  static std::unique_ptr<EventRecorder> start(const Env& env, Client& client, const std::string& component,
                                              const std::string& instance);
  virtual ~EventRecorder() = default;  // writes what is left, for 2 s at most
  virtual void normal(const ObjectReference& object, absl::string_view reason, absl::string_view message) = 0;
  virtual void warning(const ObjectReference& object, absl::string_view reason, absl::string_view message) = 0;
};

}  // namespace gleaner::kube
