// CoordinatorEvent is an event of the stream to the coordinator, as a rank gets it: an event for its pipeline, or one
// for the rank alone. CoordinatorListener turns the callbacks of member::Listener into such events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "comm-lib/pipeline/event.h"
#include "common/member/listener.h"

namespace gleaner::runtime {

// See member::Listener's functions of the same names.
struct Failed {
  absl::Status status;
};
struct Regroup {
  absl::Status why;
};
struct Newcomers {
  uint32_t workers = 0;
};
struct Inquire {
  std::string tensor;
};
struct Trace {
  control::TraceOrder order;
  uint64_t recording = 0;
};

using CoordinatorEvent = std::variant<pipeline::Event, Failed, Regroup, Newcomers, Inquire, Trace>;

class CoordinatorListener : public member::Listener {
 public:
  // `take` gets every event, on the coordinator's thread.
  explicit CoordinatorListener(std::function<void(CoordinatorEvent)> take) : take_(std::move(take)) {}

  void on_welcome(const control::Welcome& welcome) override { take_(pipeline::Event(welcome)); }
  void on_prepare(std::shared_ptr<const plan::Plan> plan) override {
    take_(pipeline::Event(pipeline::Prepare{std::move(plan)}));
  }
  void on_commit(uint32_t epoch) override { take_(pipeline::Event(pipeline::Commit{epoch})); }
  void on_failed(const absl::Status& status) override { take_(Failed{status}); }
  void on_regroup(const absl::Status& status) override { take_(Regroup{status}); }
  void on_newcomers(uint32_t workers) override { take_(Newcomers{workers}); }
  void on_finished() override {}
  void on_ending() override { take_(pipeline::Event(pipeline::Ending())); }
  void on_coordinator_lost() override { take_(pipeline::Event(pipeline::CoordinatorLost())); }
  void on_coordinator_found() override { take_(pipeline::Event(pipeline::CoordinatorFound())); }
  void on_coordinator_gone(const absl::Status& why) override { take_(pipeline::Event(pipeline::CoordinatorGone{why})); }
  void on_inquired(const std::string& tensor) override { take_(Inquire{tensor}); }
  void on_trace(control::TraceOrder order, uint64_t recording) override { take_(Trace{order, recording}); }

 private:
  const std::function<void(CoordinatorEvent)> take_;
};

}  // namespace gleaner::runtime
