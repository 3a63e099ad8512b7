// A Listener that writes down its calls as text.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/member/listener.h"

namespace gleaner::member {

struct RecordingListener final : Listener {
  void on_welcome(const Welcome& welcome) override { calls.push_back(absl::StrCat("welcome ", welcome.member)); }
  void on_prepare(std::shared_ptr<const plan::Plan> plan) override {
    calls.push_back(absl::StrCat("prepare ", plan->epoch));
  }
  void on_commit(uint32_t epoch) override { calls.push_back(absl::StrCat("commit ", epoch)); }
  void on_failed(const absl::Status& status) override { calls.push_back(absl::StrCat("failed: ", status.message())); }
  void on_regroup(const absl::Status& status) override { calls.push_back(absl::StrCat("regroup: ", status.message())); }
  void on_newcomers(uint32_t workers) override { calls.push_back(absl::StrCat("newcomers ", workers)); }
  void on_ending() override { calls.emplace_back("ending"); }
  void on_finished() override { calls.emplace_back("finished"); }
  void on_coordinator_lost() override { calls.emplace_back("coordinator lost"); }
  void on_coordinator_gone(const absl::Status&) override { calls.emplace_back("coordinator gone"); }
  void on_coordinator_found() override { calls.emplace_back("coordinator found"); }
  void on_inquired(const std::string& tensor) override { calls.push_back(absl::StrCat("inquired ", tensor)); }
  void on_trace(TraceOrder order, uint64_t recording) override {
    calls.push_back(absl::StrCat("trace ", static_cast<int>(order), " ", recording));
  }

  std::vector<std::string> calls;
};

}  // namespace gleaner::member
