#include "common/collective/messages.h"

#include <deque>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::collective {
namespace {

absl::Status wrong(const Schedule& schedule, uint32_t rank, size_t op, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(describe(schedule, rank, op), " ", what));
}

absl::Status check_stages(const Schedule& schedule) {
  std::vector<uint32_t> stage_of(schedule.ranks, 0);  // the last stage that names the rank, counted from 1
  for (uint32_t stage = 1; stage <= schedule.stages.size(); ++stage) {
    for (const std::vector<uint32_t>& group : schedule.stages[stage - 1]) {
      for (const uint32_t rank : group) {
        if (rank < schedule.ranks && stage_of[rank] != stage) {
          stage_of[rank] = stage;
          continue;
        }
        return absl::InvalidArgumentError(absl::StrCat(
            "stage ", stage - 1, " names rank ", rank,
            rank < schedule.ranks ? " twice" : absl::StrCat(", but there are ", schedule.ranks, " ranks")));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status check_op(const Schedule& schedule, uint32_t rank, size_t i) {
  const std::vector<Op>& program = schedule.programs[rank];
  const Op& op = program[i];
  if (op.peer >= schedule.ranks) {
    return wrong(schedule, rank, i, absl::StrCat("has a peer out of range: there are ", schedule.ranks, " ranks"));
  }
  if (op.peer == rank) return wrong(schedule, rank, i, "has its own rank as its peer");
  if (op.slice.count == 0 || op.slice.first >= schedule.chunks || op.slice.count > schedule.chunks - op.slice.first) {
    return wrong(schedule, rank, i,
                 absl::StrCat("has a slice out of range: it begins at chunk ", op.slice.first, " and has ",
                              op.slice.count, " of the ", schedule.chunks, " chunks"));
  }
  if (op.step >= schedule.steps) {
    return wrong(schedule, rank, i,
                 absl::StrCat("is in step ", op.step, ", but the schedule has ", schedule.steps, " steps"));
  }
  if (i > 0 && op.step < program[i - 1].step) {
    return wrong(schedule, rank, i, absl::StrCat("is in step ", op.step, ", after one in step ", program[i - 1].step));
  }
  return absl::OkStatus();
}

absl::Status check_form(const Schedule& schedule) {
  if (schedule.ranks == 0 || schedule.programs.size() != schedule.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule has ", schedule.programs.size(), " programs for ", schedule.ranks, " ranks"));
  }
  if (schedule.root >= schedule.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the root is rank ", schedule.root, ", but there are ", schedule.ranks, " ranks"));
  }
  if (schedule.chunks == 0) return absl::InvalidArgumentError("the schedule has no chunk");
  if (schedule.blocks() != 1 && schedule.chunks != schedule.blocks()) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule has ", schedule.chunks, " chunks for the ",
                                                   schedule.blocks(), " blocks of its ",
                                                   name_of(schedule.postcondition), "; each block must be a chunk"));
  }
  uint64_t ops = 0;
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    ops += schedule.programs[rank].size();
    for (size_t i = 0; i < schedule.programs[rank].size(); ++i) GLN_RETURN_IF_ERROR(check_op(schedule, rank, i));
  }
  if (ops > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule has ", ops, " operations; at most 2^32 - 1"));
  }
  return check_stages(schedule);
}

absl::Status check_pair(const Schedule& schedule, const Message& message) {
  const Op& receive = schedule.programs[message.to][message.receive];
  const std::string sent = absl::StrCat("the message of ", describe(schedule, message.from, message.send));
  if (receive.step != message.step) {
    return wrong(
        schedule, message.to, message.receive,
        absl::StrCat("takes another step than ", sent, ": step ", receive.step, " against step ", message.step));
  }
  if (receive.slice != message.slice) {
    return wrong(schedule, message.to, message.receive, absl::StrCat("takes another slice than ", sent));
  }
  if (receive.take == message.take) return absl::OkStatus();
  return wrong(schedule, message.to, message.receive,
               absl::StrCat(receive.take == Take::kReduce ? "adds " : "copies ", sent, ", which is sent to be ",
                            receive.take == Take::kReduce ? "copied" : "added"));
}

// Returns the error of ranks that wait for each other, of which `rank` is one or waits for one. `next` has each rank's
// next operation.
absl::Status cycle_error(const Schedule& schedule, uint32_t rank, const std::vector<uint32_t>& next) {
  const auto awaited = [&](uint32_t waiting) { return schedule.programs[waiting][next[waiting]].peer; };
  std::vector<bool> seen(schedule.ranks, false);
  for (; !seen[rank]; rank = awaited(rank)) seen[rank] = true;  // ends in the cycle, as each awaited rank waits, too
  std::string cycle = absl::StrCat("waits for ever: rank ", rank, " waits for rank ", awaited(rank));
  uint32_t others = 0;
  for (uint32_t at = awaited(rank); at != rank; at = awaited(at)) {
    if (++others < 4) absl::StrAppend(&cycle, ", which waits for rank ", awaited(at));
  }
  if (others >= 4) absl::StrAppend(&cycle, ", and so on through ", others + 1, " ranks");
  return wrong(schedule, rank, next[rank], cycle);
}

}  // namespace

uint64_t message_count(const Schedule& schedule) {
  uint64_t operations = 0;
  for (const std::vector<Op>& program : schedule.programs) operations += program.size();
  return operations / 2;
}

std::string describe(const Schedule& schedule, uint32_t rank, size_t i) {
  const Op& op = schedule.programs[rank][i];
  const std::string slice = op.slice.count <= 1 ? absl::StrCat("chunk ", op.slice.first)
                                                : absl::StrCat("chunks ", op.slice.first, " to ",
                                                               uint64_t{op.slice.first} + op.slice.count - 1);
  const absl::string_view kind = op.kind == OpKind::kSend   ? "send of "
                                 : op.take == Take::kReduce ? "receive-reduce of "
                                                            : "receive-copy of ";
  return absl::StrCat("rank ", rank, ", operation ", i, " (", kind, slice, op.kind == OpKind::kSend ? " to" : " from",
                      " rank ", op.peer, ")");
}

absl::StatusOr<Messages> Messages::make(const Schedule& schedule) {
  GLN_RETURN_IF_ERROR(check_form(schedule));
  Messages messages;
  messages.first_op_.reserve(schedule.ranks + size_t{1});
  messages.first_op_.push_back(0);
  std::vector<std::vector<uint32_t>> incoming(schedule.ranks);  // messages to each rank, by sender, in their order
  for (uint32_t from = 0; from < schedule.ranks; ++from) {
    const std::vector<Op>& program = schedule.programs[from];
    messages.first_op_.push_back(messages.first_op_.back() + program.size());
    for (uint32_t i = 0; i < program.size(); ++i) {
      if (program[i].kind != OpKind::kSend) continue;
      incoming[program[i].peer].push_back(static_cast<uint32_t>(messages.all_.size()));
      messages.all_.push_back({from, program[i].peer, i, 0, program[i].step, program[i].slice, program[i].take});
    }
  }
  messages.message_of_.resize(messages.first_op_.back());
  std::vector<size_t> next(schedule.ranks), end(schedule.ranks);  // by sender: positions in incoming[to]
  for (uint32_t to = 0; to < schedule.ranks; ++to) {
    std::fill(next.begin(), next.end(), 0);
    std::fill(end.begin(), end.end(), 0);
    for (size_t i = 0; i < incoming[to].size(); ++i) {
      const uint32_t from = messages.all_[incoming[to][i]].from;
      if (end[from] == 0) next[from] = i;
      end[from] = i + 1;
    }
    const std::vector<Op>& program = schedule.programs[to];
    for (uint32_t i = 0; i < program.size(); ++i) {
      if (program[i].kind == OpKind::kSend) continue;
      const uint32_t from = program[i].peer;
      if (next[from] == end[from]) return wrong(schedule, to, i, "waits for ever: that rank sends no such message");
      const uint32_t index = incoming[to][next[from]++];
      Message& message = messages.all_[index];
      message.receive = i;
      GLN_RETURN_IF_ERROR(check_pair(schedule, message));
      messages.message_of_[messages.first_op_[to] + i] = index;
      messages.message_of_[messages.first_op_[message.from] + message.send] = index;
    }
    for (const uint32_t index : incoming[to]) {
      const Message& message = messages.all_[index];
      if (next[message.from] == end[message.from]) continue;
      const Message& lost = messages.all_[incoming[to][next[message.from]]];
      return wrong(schedule, lost.from, lost.send, "sends a message that nobody receives");
    }
  }
  return messages;
}

absl::Status Messages::run(
    const Schedule& schedule,
    absl::FunctionRef<absl::Status(uint32_t rank, uint32_t op, uint32_t message)> execute) const {
  std::vector<uint32_t> next(schedule.ranks, 0);  // by rank: its next operation
  std::deque<uint32_t> ready;                     // ranks that may go on
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) ready.push_back(rank);
  while (!ready.empty()) {
    const uint32_t rank = ready.front();
    ready.pop_front();
    const std::vector<Op>& program = schedule.programs[rank];
    while (next[rank] < program.size()) {
      const uint32_t op = next[rank], index = index_of(rank, op);
      const Message& message = all_[index];
      const bool sends = program[op].kind == OpKind::kSend;
      if (!sends && next[message.from] <= message.send) break;
      GLN_RETURN_IF_ERROR(execute(rank, op, index));
      ++next[rank];
      if (sends && next[message.to] == message.receive) ready.push_back(message.to);
    }
  }
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    if (next[rank] < schedule.programs[rank].size()) return cycle_error(schedule, rank, next);
  }
  return absl::OkStatus();
}

}  // namespace gleaner::collective
