// Outbox holds the messages that a member sends later: those for a coordinator that admits it, and its last report,
// which goes out with the next heartbeat. Pure; belongs to one thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/control/member_messages.h"

namespace gleaner::member {

class Outbox {
 public:
  explicit Outbox(absl::Duration heartbeat) : heartbeat_(heartbeat) {}

  // Keeps a message until the member is admitted.
  void hold_back(control::MemberMessage message) { held_back_.push_back(std::move(message)); }
  std::vector<control::MemberMessage> take_held_back() { return std::exchange(held_back_, {}); }
  void forget_held_back() { held_back_.clear(); }

  // Keeps a report, in place of the one before.
  void report(control::Report report) {
    last_report_ = report;
    report_ = std::move(report);
  }
  // Returns the report that was not sent yet, if there is one.
  std::optional<control::Report> take_report() { return std::exchange(report_, std::nullopt); }
  // Has the last report sent once more: another coordinator does not have it.
  void repeat_report() { report_ = last_report_; }

  // Records that a message was sent.
  void on_sent(absl::Duration now) { last_sent_ = now; }
  // Returns the message that keeps the member alive for its coordinator, if one is due: the report or a heartbeat.
  std::optional<control::MemberMessage> take_due(absl::Duration now) {
    if (now - last_sent_ < heartbeat_) return std::nullopt;
    if (auto report = take_report(); report.has_value()) return *std::move(report);
    return control::Heartbeat{};
  }

 private:
  const absl::Duration heartbeat_;
  absl::Duration last_sent_;
  std::vector<control::MemberMessage> held_back_;
  std::optional<control::Report> report_;  // not sent yet
  control::Report last_report_;
};

}  // namespace gleaner::member
