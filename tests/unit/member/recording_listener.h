// A Listener that writes down its events as text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/member/listener.h"

namespace gleaner::member {

struct RecordingListener final : Listener {
  void on_event(const Event& event) override {
    std::visit([this](const auto& each) { calls.push_back(text_of(each)); }, event);
  }
  static std::string text_of(const control::Welcome& event) { return absl::StrCat("welcome ", event.member); }
  static std::string text_of(const control::Prepare& event) { return absl::StrCat("prepare ", event.plan->epoch); }
  static std::string text_of(const control::Commit& event) { return absl::StrCat("commit ", event.epoch); }
  static std::string text_of(const control::Withdraw& event) { return absl::StrCat("withdraw ", event.epoch); }
  static std::string text_of(const control::CountPushPulls&) { return "count push_pulls"; }
  static std::string text_of(const control::Failed& event) { return absl::StrCat("failed: ", event.status.message()); }
  static std::string text_of(const control::Regroup& event) { return absl::StrCat("regroup: ", event.why.message()); }
  static std::string text_of(const control::Newcomers& event) { return absl::StrCat("newcomers ", event.workers); }
  static std::string text_of(const control::Ending&) { return "ending"; }
  static std::string text_of(const control::Finished&) { return "finished"; }
  static std::string text_of(const CoordinatorLost&) { return "coordinator lost"; }
  static std::string text_of(const CoordinatorGone&) { return "coordinator gone"; }
  static std::string text_of(const CoordinatorFound&) { return "coordinator found"; }
  static std::string text_of(const control::Inquire& event) { return absl::StrCat("inquired ", event.tensor); }
  static std::string text_of(const control::Trace& event) {
    return absl::StrCat("trace ", static_cast<int>(event.order), " ", event.recording);
  }

  std::vector<std::string> calls;
};

}  // namespace gleaner::member
