// RestartTest: a test with the members of one job, whose coordinator can be killed and started again on the same port.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/service/service.h"
#include "tests/held_port.h"
#include "tests/manual_clock.h"
#include "tests/unit/member/participant.h"
#include "tests/unit/run/program.h"

namespace gleaner {

inline plan::Tensor tensor(const std::string& name) { return {name, 1000, DataType::kFloat32, 0}; }

class RestartTest : public testing::Test {
 protected:
  RestartTest() : system_({"test", LogLevel::kOff}), address_{"127.0.0.1", port_.port()} {
    job_.options.job = "default";
    job_.options.workers = 2;
    job_.options.summers = 1;
    // No member of a slow machine counts as silent.
    job_.options.deadline = job_.options.summer_timeout = job_.options.change_timeout = absl::Minutes(5);
    job_.token = kToken;
  }

  void start() {
    coordinator::Service::ServiceOptions options = service_options_;
    options.listen = {"127.0.0.1", port_.port()};
    Env env = system_.env();
    env.clock = clock_;
    auto service = coordinator::Service::start(env, options);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }
  void start_job(bool may_resume = true) {
    start();
    job_.may_resume = may_resume;
    ASSERT_EQ(service_->add(job_), absl::OkStatus());
  }
  void kill() { service_.reset(); }

  member::JoinOptions worker_options(uint32_t index) const {
    member::JoinOptions join;
    join.coordinator = address_;
    join.token = kToken;
    join.identity.index = index;
    join.identity.address = absl::StrCat("127.0.0.1:", 7000 + index);
    join.timeout = absl::Minutes(5);
    return join;
  }
  // Joins as worker 0, worker 1, or (2) the summer.
  std::unique_ptr<Participant> join(uint32_t member) const {
    member::JoinOptions options = worker_options(member);
    if (member == 2) {
      options.identity.role = control::Role::kSummer;
      options.identity.index = 0;
    }
    return std::make_unique<Participant>(system_.env(), options);
  }
  void join_all() {
    for (uint32_t member = 0; member < 3; ++member) members_.push_back(join(member));
  }
  void begin() {
    start_job(false);
    join_all();
    declare_all("a");
    await_all(2);
  }
  void declare_all(const std::string& name) {
    for (uint32_t i = 0; i < 2; ++i) members_[i]->client().declare({tensor(name)});
  }
  void await_all(uint32_t epoch) {
    for (const auto& member : members_) ASSERT_NE(member->await_epoch(epoch), nullptr) << member->await_failure();
  }
  bool await_outcome(const absl::Status& expected) {
    return eventually([&] {
      const auto state = service_->state("default");
      return state.has_value() && state->outcome == expected;
    });
  }

  SystemEnv system_;
  coordinator::Service::ServiceOptions service_options_;
  coordinator::Service::JobOptions job_;
  ManualClock manual_clock_;
  const Clock* clock_ = system_.env().clock;  // of the coordinators that are started
  const HeldPort port_;                       // of all coordinators
  Address address_;                           // through which members reach the coordinator
  std::unique_ptr<coordinator::Service> service_;
  std::vector<std::unique_ptr<Participant>> members_;
};

}  // namespace gleaner
