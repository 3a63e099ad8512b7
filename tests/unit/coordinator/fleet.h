// Fleet: the members of a job, with the plans that each of them holds, and a coordinator's core that can be lost and
// replaced. Messages wait in queues (inbox, outbox) until a test delivers them.
//
// A seat is a member's index in `members`: first all ranks, then the CPU summers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/successor.h"
#include "common/proto/plan_codec.h"
#include "coordinator/core/core.h"

namespace gleaner::coordinator {

inline constexpr absl::Duration kExitTimeout = absl::Seconds(2);  // of jobs whose launcher reports exits

class Fleet {
 public:
  struct Member {
    Identity identity;
    StreamId stream = 0;  // 0: not connected
    uint32_t member = 0;
    std::string session;
    uint64_t term = 0;
    std::shared_ptr<const plan::Plan> prepared, committed;
    uint32_t heard = 0;  // the highest epoch that the member was told to prepare
    std::vector<plan::Tensor> declared;
    bool left = false;        // the member has sent Leave
    bool over = false;        // the member was told how the job ended
    bool is_stopped = false;  // pass() sends no heartbeats of the member
    absl::Status rejection;   // answer to the member's last attempt to join
    absl::Status failure;
    std::deque<Message> inbox;
    std::deque<std::function<void()>> outbox;
  };

  explicit Fleet(const Options& options) : options_(options) {
    restart(false);
    for (uint32_t seat = 0; seat < options.workers * options.local_ranks + options.summers; ++seat) add(seat);
  }

  void add(uint32_t seat) {
    const uint32_t ranks = options_.workers * options_.local_ranks;
    Identity identity;
    identity.role = seat < ranks ? Role::kWorker : Role::kSummer;
    identity.index = seat < ranks ? seat / options_.local_ranks : seat - ranks;
    identity.local_rank = seat < ranks ? seat % options_.local_ranks : 0;
    identity.local_size = options_.local_ranks;
    if (identity.local_rank == 0) identity.address = absl::StrCat("10.0.0.", seat, ":7000");
    if (identity.local_rank == 0) identity.endpoints = {absl::StrCat("shm://host.1/shm/", seat)};
    members.push_back({identity});
  }

  // Replaces the coordinator by another one. Messages in flight are lost.
  void restart(bool may_resume = true) {
    for (Member& member : members) disconnect(member);
    ++sessions_;
    core = std::make_unique<Core>(options_, now, Origin{absl::StrCat("session ", sessions_), may_resume, 0, sessions_});
  }
  // Breaks the member's stream. Messages in flight on it are lost.
  static void disconnect(Member& member) {
    member.stream = 0;
    member.inbox.clear();
    member.outbox.clear();
  }
  void cut(uint32_t seat) {
    const StreamId stream = members[seat].stream;
    disconnect(members[seat]);
    core->on_disconnected(stream, absl::UnavailableError("its connection broke"), actions);
    collect();
  }

  std::optional<Resume> resume_of(const Member& member) const {
    const uint32_t committed = member.committed == nullptr ? 0 : member.committed->epoch;
    if (committed == 0 && member.prepared == nullptr) return std::nullopt;
    return Resume{member.session,
                  committed,
                  member.heard > committed ? member.heard : 0,
                  committed == 0 ? "" : proto::digest(*member.committed),
                  member.member,
                  member.term};
  }
  void connect(uint32_t seat) { connect(seat, resume_of(members[seat])); }
  void connect(uint32_t seat, const std::optional<Resume>& resume) {
    members[seat].stream = ++streams_;
    members[seat].rejection = absl::OkStatus();
    core->on_joined(members[seat].stream, members[seat].identity, resume, now, actions);
    collect();
  }
  void connect_all() {
    for (uint32_t seat = 0; seat < members.size(); ++seat) {
      if (members[seat].stream == 0 && !members[seat].left) connect(seat);
    }
  }

  // Deliver the next message to or from a member. Return false if there is none.
  bool deliver_to(uint32_t seat) {
    Member& member = members[seat];
    if (member.inbox.empty()) return false;
    const Message message = std::move(member.inbox.front());
    member.inbox.pop_front();
    on_message(member, message);
    return true;
  }
  bool deliver_from(uint32_t seat) {
    Member& member = members[seat];
    if (member.outbox.empty()) return false;
    const auto event = std::move(member.outbox.front());
    member.outbox.pop_front();
    event();
    collect();
    return true;
  }
  void settle() {
    for (bool any = true; any;) {
      any = false;
      for (uint32_t seat = 0; seat < members.size(); ++seat) {
        while (deliver_to(seat) || deliver_from(seat)) any = true;
      }
    }
  }
  void start() {
    connect_all();
    settle();
    ASSERT_EQ(core->plan().epoch, 1u);
  }

  void declare(uint32_t seat, const std::vector<plan::Tensor>& tensors) {
    Member& member = members[seat];
    member.declared.insert(member.declared.end(), tensors.begin(), tensors.end());
    if (member.stream != 0 && !member.session.empty()) say_declared(member, tensors);
  }
  void declare_all(const std::string& name) {
    for (uint32_t seat = 0; seat < options_.workers * options_.local_ranks; ++seat) {
      declare(seat, {{name, 1000, DataType::kFloat32, 0}});
    }
  }
  void leave(uint32_t seat) {
    Member& member = members[seat];
    member.left = true;
    if (member.stream == 0) return;
    member.outbox.emplace_back([this, stream = member.stream, epoch = epoch(seat)] {
      core->on_left(stream, absl::OkStatus(), epoch, now, actions);
    });
  }
  // The rank in this seat reports that it can't reach a member of the plan that it follows.
  void fault(uint32_t seat, uint32_t member) { fault(seat, member, epoch(seat)); }
  void fault(uint32_t seat, uint32_t member, uint32_t plan_epoch) {
    core->on_fault(members[seat].stream, member, plan_epoch, absl::UnavailableError("out of reach"), now, actions);
    collect();
  }
  void ended(uint32_t seat, const absl::Status& how = absl::OkStatus()) {
    const Identity& who = members[seat].identity;
    core->on_ended(who.role, *who.index, how, now, actions);
    collect();
  }
  void pass(absl::Duration time) {
    for (const absl::Duration end = now + time; now < end;) {
      now += absl::Milliseconds(100);
      for (const Member& member : members) {
        if (member.stream != 0 && !member.is_stopped) core->on_heartbeat(member.stream, now);
      }
      core->on_tick(now, actions);
      collect();
    }
  }

  // Moves the messages that the core has sent to the members' inboxes.
  void collect() {
    for (Send& send : actions.sends) {
      for (Member& member : members) {
        if (member.stream == send.stream) member.inbox.push_back(std::move(send.message));
      }
    }
    notes.insert(notes.end(), actions.notes.begin(), actions.notes.end());
    const ModelRequest request = std::move(actions.model);
    actions = {};
    if (request == nullptr) return;
    core->on_modelled(request, Modelling::carry_out(*request), now, actions);
    collect();
  }

  uint32_t epoch(uint32_t seat) const {
    return members[seat].committed == nullptr ? 0 : members[seat].committed->epoch;
  }
  bool has_tensor(uint32_t seat, const std::string& name) const {
    if (members[seat].committed == nullptr) return false;
    for (const plan::Tensor& tensor : members[seat].committed->tensors) {
      if (tensor.name == name) return true;
    }
    return false;
  }
  std::string outcome() const {
    if (!core->outcome().has_ended()) return "none";
    return core->outcome().status()->ok() ? "well" : std::string(core->outcome().status()->message());
  }

  const Options options_;
  absl::Duration now = absl::Seconds(1000);
  std::vector<Member> members;
  std::unique_ptr<Core> core;
  Actions actions;
  std::vector<std::string> notes;

 private:
  void say(Member& member, std::function<void(StreamId)> event) {
    member.outbox.emplace_back([stream = member.stream, event = std::move(event)] { event(stream); });
  }
  void say_declared(Member& member, const std::vector<plan::Tensor>& tensors) {
    say(member, [this, tensors](StreamId stream) { core->on_declared(stream, tensors, {}, now, actions); });
  }

  void on_message(Member& member, const Message& message) {
    if (const auto* welcome = std::get_if<Welcome>(&message)) {
      if (member.session != welcome->session) {
        EXPECT_EQ(member.committed, nullptr) << "another session";
        member.prepared = nullptr;
      }
      member.session = welcome->session;
      member.term = std::max(member.term, welcome->term);
      member.member = welcome->member;
      std::vector<plan::Tensor> unplanned;
      for (const plan::Tensor& tensor : member.declared) {
        bool planned = false;
        if (member.committed != nullptr) {
          for (const plan::Tensor& other : member.committed->tensors) planned = planned || other.name == tensor.name;
        }
        if (!planned) unplanned.push_back(tensor);
      }
      if (!unplanned.empty()) say_declared(member, unplanned);
      if (member.left) leave(static_cast<uint32_t>(&member - members.data()));
    } else if (const auto* prepare = std::get_if<Prepare>(&message)) {
      const auto in_force = member.committed;
      if (in_force != nullptr) {
        EXPECT_EQ(plan::check_successor(*prepare->plan, *in_force), absl::OkStatus());
      }
      member.prepared = prepare->plan;
      member.heard = std::max(member.heard, prepare->plan->epoch);
      say(member, [this, epoch = prepare->plan->epoch](StreamId stream) {
        core->on_acknowledged(stream, epoch, now, actions);
      });
    } else if (const auto* commit = std::get_if<Commit>(&message)) {
      ASSERT_NE(member.prepared, nullptr);
      ASSERT_EQ(member.prepared->epoch, commit->epoch);
      member.committed = std::exchange(member.prepared, nullptr);
      check_commit(*member.committed);
      if (member.left) leave(static_cast<uint32_t>(&member - members.data()));
    } else if (const auto* withdraw = std::get_if<Withdraw>(&message)) {
      if (member.prepared != nullptr && member.prepared->epoch == withdraw->epoch) member.prepared = nullptr;
    } else if (std::holds_alternative<Recall>(message)) {
      say(member, [this, plan = *member.committed](StreamId stream) { core->on_recalled(stream, plan, now, actions); });
    } else if (const auto* rejected = std::get_if<Rejected>(&message)) {
      member.rejection = rejected->why;
      disconnect(member);
      if (absl::IsAborted(rejected->why)) {  // it will join as a new member
        member.session.clear();
        member.prepared = member.committed = nullptr;
        member.heard = 0;
      }
    } else if (const auto* failed = std::get_if<Failed>(&message)) {
      member.failure = failed->status;
      member.over = true;
    } else if (std::holds_alternative<Finished>(message) || std::holds_alternative<Goodbye>(message)) {
      member.over = true;
    }
  }

  // Called when a member commits a plan, so that its frames may arrive anywhere: every worker that has not left must
  // have the same plan, and must be able to follow it.
  void check_commit(const plan::Plan& plan) {
    const auto [known, is_new] = committed_.emplace(plan.epoch, plan);
    EXPECT_EQ(known->second, plan) << "two plans of epoch " << plan.epoch;
    for (const Member& other : members) {
      // A summer may have been left out of the plan meanwhile and have joined again as a new member.
      if (other.left || other.over || other.identity.role == Role::kSummer) continue;
      const bool follows = other.committed != nullptr && other.committed->epoch >= plan.epoch;
      const bool is_ready = other.prepared != nullptr && *other.prepared == plan;
      EXPECT_TRUE(follows || is_ready) << "epoch " << plan.epoch << " is in force, and " << other.identity.address
                                       << " has neither it nor a later one";
    }
  }

  StreamId streams_ = 0;
  uint64_t sessions_ = 0;
  std::map<uint32_t, plan::Plan> committed_;
};

inline Options options(uint32_t workers, uint32_t summers, uint32_t local_ranks = 1) {
  Options result;
  result.workers = workers;
  result.summers = summers;
  result.local_ranks = local_ranks;
  return result;
}

// Returns the epoch of the plan that each member has committed.
inline std::vector<uint32_t> epochs(const Fleet& fleet) {
  std::vector<uint32_t> result;
  for (uint32_t seat = 0; seat < fleet.members.size(); ++seat) result.push_back(fleet.epoch(seat));
  return result;
}

}  // namespace gleaner::coordinator
