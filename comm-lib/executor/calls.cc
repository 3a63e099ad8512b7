#include "comm-lib/executor/calls.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace gleaner::executor {
namespace {

using collective::Postcondition;

// Programs wait for calls, so calls go before tensors.
constexpr int32_t kCallPriority = std::numeric_limits<int32_t>::min();

std::string name_of_call(uint32_t tensor, uint64_t number) {
  return absl::StrCat("call ", number, " of group ", tensor & ~wire::kCallBit);
}

absl::Status differ(const wire::Header& header, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat(name_of_call(header.tensor, header.step), ": worker ", header.sender,
                                                 " ", problem,
                                                 "; all ranks of a group must make the same calls in the same order, "
                                                 "with the same sizes, types and reductions"));
}

absl::Status wrong_size(const char* what, uint64_t bytes, uint64_t expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what, " of a collective has ", bytes, " bytes, expected ", expected));
}

// Returns whether the sizes have this sum, which does not overflow.
bool adds_up(const std::vector<uint64_t>& sizes, uint64_t sum) {
  for (const uint64_t size : sizes) {
    if (size > sum) return false;
    sum -= size;
  }
  return sum == 0;
}

// Returns the size by which ranks choose an algorithm: all of them find the same.
uint64_t vector_bytes(const Call& call, const Group& group) {
  const bool has_part = (call.collective == Postcondition::kGather || call.collective == Postcondition::kScatter) &&
                        group.rank != call.root;
  if (call.collective == Postcondition::kAllToAll) return 0;  // sizes may differ
  return std::max<uint64_t>(call.input.size(), call.output.size()) * (has_part ? group.members.size() : 1);
}

// Returns the bytes of a part of a block.
uint64_t bytes_in_part(uint64_t block_bytes, uint64_t part_bytes, uint32_t part) {
  const uint64_t before = part * part_bytes;
  return block_bytes > before ? std::min(part_bytes, block_bytes - before) : 0;
}

}  // namespace

absl::Status Calls::add_group(uint32_t number, std::vector<uint32_t> members, uint32_t workers) {
  if ((number & wire::kCallBit) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the number of a group is ", number, ", expected less than 2^31"));
  }
  std::vector<bool> is_member(workers);
  for (const uint32_t member : members) {
    if (member >= workers || is_member[member]) {
      return absl::InvalidArgumentError(absl::StrCat("group ", number, " has worker ", member, ", which ",
                                                     member < workers ? "it has already" : "the job does not have"));
    }
    is_member[member] = true;
  }
  const auto own = std::find(members.begin(), members.end(), worker_);
  if (own == members.end()) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", worker_, " is no member of group ", number));
  }
  if (removed_.contains(number)) {
    return absl::InvalidArgumentError(absl::StrCat("group ", number, " was removed; give another group a new number"));
  }
  const auto [group, is_new] = groups_.try_emplace(number);
  if (!is_new) return absl::InvalidArgumentError(absl::StrCat("group ", number, " exists"));
  group->second.rank = static_cast<uint32_t>(own - members.begin());
  group->second.members = std::move(members);
  group->second.workers = workers;
  machine_.add_queue(&group->second.starts);
  early_.on_made(wire::kCallBit | number);
  return absl::OkStatus();
}

absl::Status Calls::remove_group(uint32_t number, Actions& actions) {
  const auto group = groups_.find(number);
  if (group == groups_.end()) return absl::InvalidArgumentError(absl::StrCat("there is no group ", number));
  const uint32_t subject = wire::kCallBit | number;
  const auto run = runs_.lower_bound({subject, 0, 0});
  if (run != runs_.end() && std::get<0>(run->first) == subject) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_of_call(subject, std::get<1>(run->first)), " is in flight; wait for it before"));
  }
  removed_[number] = group->second.next;
  machine_.remove_queue(&group->second.starts);
  groups_.erase(group);
  programs_.forget(number);
  if (const EarlyFrames::Frame* const early = early_.of_group(subject); early != nullptr) {
    actions.refused.Update(call_of_removed(early->header));
  }
  return absl::OkStatus();
}

// Finds the size of each block of the work buffer.
absl::Status Calls::measure(const Call& call, const Group& group, const CallProgram& program, Open& open) const {
  const auto ranks = static_cast<uint32_t>(group.members.size());
  if (call.sent.empty() && call.received.empty()) {
    const bool has_input = !program.begins_with().empty();
    const uint64_t blocks = has_input ? program.begins_with().size() : program.ends_with().size();
    const uint64_t bytes = has_input ? call.input.size() : call.output.size();
    if (bytes % blocks != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a collective of ", blocks, " blocks has ", bytes, " bytes, which can't be cut evenly"));
    }
    open.bytes.assign(program.blocks(), bytes / blocks);
    return absl::OkStatus();
  }
  if (call.collective != Postcondition::kAllToAll || call.sent.size() != ranks || call.received.size() != ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("only an all-to-all has sizes for each rank, ", ranks, " in each direction"));
  }
  if (call.sent[group.rank] != call.received[group.rank]) {
    return absl::InvalidArgumentError(absl::StrCat("an all-to-all sends ", call.sent[group.rank],
                                                   " bytes to its own rank, and receives ", call.received[group.rank]));
  }
  if (!adds_up(call.sent, call.input.size()) || !adds_up(call.received, call.output.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the sizes for each rank of an all-to-all don't add up to its ",
                                                   call.input.size(), " bytes of input and ", call.output.size(),
                                                   " of output"));
  }
  open.bytes = call.received;
  open.bytes.insert(open.bytes.end(), call.sent.begin(), call.sent.end());
  return absl::OkStatus();
}

// Finds the places of the blocks in input and output, and copies those that no other rank sends.
absl::Status Calls::place(const Call& call, const CallProgram& program, Open& open) const {
  std::vector<uint64_t> input_of(program.blocks(), UINT64_MAX);
  uint64_t offset = 0;
  for (const uint32_t block : program.begins_with()) {
    if (program.moves(block)) open.inputs.push_back({block, offset});
    input_of[block] = offset;
    offset += open.bytes[block];
  }
  if (call.input.size() != offset) return wrong_size("input", call.input.size(), offset);
  std::vector<Placed> copies;
  offset = 0;
  for (const uint32_t block : program.ends_with()) {
    (input_of[block] == UINT64_MAX ? open.outputs : copies).push_back({block, offset});
    offset += open.bytes[block];
  }
  if (call.output.empty() && open.outputs.empty()) return absl::OkStatus();
  if (call.output.size() != offset) return wrong_size("output", call.output.size(), offset);
  for (const Placed& copy : copies) {
    if (open.bytes[copy.block] == 0) continue;  // memory without bytes may be null
    std::memmove(call.output.data() + copy.offset, call.input.data() + input_of[copy.block], open.bytes[copy.block]);
  }
  return absl::OkStatus();
}

absl::Status Calls::start(const Call& call, absl::Duration now, Actions& actions) {
  const auto found = groups_.find(call.group);
  if (found == groups_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no group ", call.group));
  }
  Numbered& group = found->second;
  if (call.root >= group.members.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the root of a collective is rank ", call.root, " of group ",
                                                   call.group, ", which has ", group.members.size(), " ranks"));
  }
  if (call.kind >= CallPrograms::kKinds) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kind of a call is ", call.kind, ", expected less than ", CallPrograms::kKinds));
  }
  const uint32_t code = CallPrograms::code_of(call.collective, call.root, vector_bytes(call, group), call.kind, group);
  GLN_ASSIGN_OR_RETURN(const CallProgram* const program, programs_.find(call.group, group, code));
  Open open{.id = call.id,
            .group = call.group,
            .number = group.next,
            .collective = call.collective,
            .input = call.input,
            .output = call.output,
            .program = program};
  GLN_RETURN_IF_ERROR(measure(call, group, *program, open));
  GLN_RETURN_IF_ERROR(place(call, *program, open));
  for (uint32_t block = 0; block < program->blocks(); ++block) {
    if (!program->moves(block)) continue;
    const uint64_t parts = (open.bytes[block] + program->most_part_bytes() - 1) / program->most_part_bytes();
    open.missing = std::max(open.missing, static_cast<uint32_t>(parts));
  }
  const uint32_t parts = open.missing;
  if (parts == 0) {
    actions.refused.Update(check_no_more(wire::kCallBit | call.group, group.next++));
    actions.done.push_back({call.id, absl::OkStatus()});
    return absl::OkStatus();
  }
  const uint32_t index = calls_.take();
  calls_[index] = std::move(open);
  Subject subject{.tensor = wire::kCallBit | call.group, .schedule = code, .step = group.next++};
  ++started_;
  for (subject.partition = 0; subject.partition < parts; ++subject.partition) {
    const uint32_t run = open_run(index, subject, &group.starts);
    machine_.start(run, now, actions);
    for (EarlyFrames::Frame& frame : early_.take({subject.tensor, subject.step, subject.partition})) {
      actions.refused.Update(on_frame(frame.header, std::move(frame.payload), now, actions));
    }
  }
  actions.refused.Update(check_no_more(subject.tensor, subject.step));
  return absl::OkStatus();
}

// Checks that no frame waits about a part that a call does not have here.
absl::Status Calls::check_no_more(uint32_t subject, uint64_t number) const {
  const EarlyFrames::Frame* const extra = early_.of_call(subject, number);
  return extra == nullptr ? absl::OkStatus() : differ(extra->header, "sent more bytes than this rank expects");
}

bool Calls::has_arrived(uint32_t number) const {
  const auto group = groups_.find(number);
  return group != groups_.end() && early_.of_call(wire::kCallBit | number, group->second.next) != nullptr;
}

uint32_t Calls::open_run(uint32_t call, const Subject& subject, StartQueue* queue) {
  const Open& open = calls_[call];
  std::vector<uint64_t> bytes(open.bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!open.program->moves(static_cast<uint32_t>(i))) continue;
    bytes[i] = bytes_in_part(open.bytes[i], open.program->most_part_bytes(), subject.partition);
  }
  open.program->lay_out(bytes, begins_);
  const uint32_t run =
      machine_.open(this, queue, subject, {kCallPriority, started_}, &open.program->program(), begins_);
  machine_[run].piece = call;
  runs_[{subject.tensor, subject.step, subject.partition}] = run;
  return run;
}

void Calls::begin(Run& run) {
  const Open& call = calls_[run.piece];
  Buffer work = pool_.take(run.bytes);
  for (const Placed& placed : call.inputs) {
    const Layout::Range range = run.cursor.layout().range_of(call.program->chunks_of(placed.block));
    const uint64_t from = placed.offset + run.subject.partition * call.program->most_part_bytes();
    if (range.count > 0) std::memcpy(work.bytes().data() + range.first, call.input.data() + from, range.count);
  }
  places_.assign(call.program->chunks_with_receipts(), nullptr);
  for (const Placed& placed : call.outputs) {
    const uint64_t to = placed.offset + run.subject.partition * call.program->most_part_bytes();
    call.program->find_places(placed.block, run.cursor.layout(), call.output, to, places_);
  }
  run.cursor.begin(std::move(work), places_);
}

void Calls::take_results(Run& run) {
  const Open& call = calls_[run.piece];
  for (const Placed& placed : call.outputs) {
    if (!call.program->sends(placed.block)) continue;  // the output has it already
    const Layout::Range range = run.cursor.layout().range_of(call.program->chunks_of(placed.block));
    const uint64_t to = placed.offset + run.subject.partition * call.program->most_part_bytes();
    if (range.count > 0) {
      std::memcpy(call.output.data() + to, run.cursor.work().bytes().data() + range.first, range.count);
    }
  }
}

void Calls::finish(uint32_t index, Actions& actions) {
  const Run& run = machine_[index];
  const uint32_t call = run.piece;
  runs_.erase({run.subject.tensor, run.subject.step, run.subject.partition});
  machine_.close(index);
  if (--calls_[call].missing > 0) return;
  actions.done.push_back({calls_[call].id, absl::OkStatus()});
  calls_[call] = {};
  calls_.give_back(call);
}

absl::Status Calls::on_frame(const wire::Header& header, Buffer payload, absl::Duration now, Actions& actions) {
  const Key key = {header.tensor, header.step, header.partition};
  const auto run = runs_.find(key);
  if (run != runs_.end()) return deliver(run->second, header, std::move(payload), now, actions);
  const uint32_t number = header.tensor & ~wire::kCallBit;
  const auto group = groups_.find(number);
  const auto removed = removed_.find(number);
  const uint64_t made = group != groups_.end() ? group->second.next : removed != removed_.end() ? removed->second : 0;
  if (header.step >= made) {
    if (removed != removed_.end()) return call_of_removed(header);
    if (group != groups_.end()) {
      early_.add(header, std::move(payload));
      return absl::OkStatus();
    }
    if (early_.add_unmade(header, std::move(payload), machine_.limit())) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name_of_call(header.tensor, header.step), ": worker ", worker_,
                     " has not made the group, and can hold no more ", "of what worker ", header.sender,
                     " sends in calls of such groups; every member must make a group, before or ",
                     "soon after others make calls of it"));
  }
  // A kAwait may come late: what its sender has waited for is on its way, or there.
  if (header.type == wire::FrameType::kAwait) return absl::OkStatus();
  return differ(header, "sent more bytes than this rank expects");
}

absl::Status Calls::call_of_removed(const wire::Header& header) const {
  return differ(header, absl::StrCat("has made it, and worker ", worker_, " has removed the group"));
}

absl::Status Calls::deliver(uint32_t index, const wire::Header& header, Buffer payload, absl::Duration now,
                            Actions& actions) {
  const Run& run = machine_[index];
  if (header.schedule != run.subject.schedule) {
    return differ(header, absl::StrCat("calls ", CallPrograms::describe(header.schedule), ", and worker ", worker_, " ",
                                       CallPrograms::describe(run.subject.schedule)));
  }
  if (header.type == wire::FrameType::kAwait) {
    machine_.want(index, now, actions);
    return absl::OkStatus();
  }
  const uint32_t source = run.cursor.program().source_of(header.sender);
  const uint64_t expected = source == Program::kNone ? 0 : run.cursor.expected_bytes(source);
  if (expected == 0 || payload.size() != expected || header.data_type != wire::kNoType) {
    return differ(header,
                  absl::StrCat("sent ", payload.size(), " bytes to worker ", worker_, ", which expects ", expected));
  }
  machine_.deliver(index, header.sender, std::move(payload), now, actions);
  return absl::OkStatus();
}

std::string Calls::describe(uint64_t id) const {
  uint32_t index = 0;
  while (index < calls_.size() && (calls_[index].missing == 0 || calls_[index].id != id)) ++index;
  if (index == calls_.size()) return "";
  const Open& call = calls_[index];
  const uint32_t subject = wire::kCallBit | call.group;
  const Run& first = machine_[runs_.lower_bound({subject, call.number, 0})->second];
  const Run& first_of_group = machine_[runs_.lower_bound({subject, 0, 0})->second];
  if (first.cursor.has_begun() || &first == &first_of_group) {
    return absl::StrCat(name_of(call), " waits for ", describe_missing(first));
  }
  return absl::StrCat(name_of(call), " waits for its turn after ", name_of(calls_[first_of_group.piece]),
                      ", which waits for ", describe_missing(first_of_group));
}

std::string Calls::name_of(const Open& call) const {
  return absl::StrCat(name_of_call(call.group, call.number), " (", collective::name_of(call.collective), ")");
}

// Returns the ranks from which a run has nothing, or else those from which it lacks slices.
std::string Calls::describe_missing(const Run& run) const {
  const Cursor& cursor = run.cursor;
  const std::vector<uint32_t>& members = groups_.at(run.subject.tensor & ~wire::kCallBit).members;
  std::vector<std::string> silent, late;
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    const uint32_t source = cursor.program().source_of(members[rank]);
    if (source == Program::kNone || cursor.expected_bytes(source) == 0) continue;
    const std::string name = absl::StrCat("rank ", rank, " (worker ", members[rank], ")");
    (cursor.has_slice_from(source) ? late : silent).push_back(name);
  }
  return absl::StrJoin(silent.empty() ? late : silent, ", ");
}

void Calls::fail(const absl::Status& status, Actions& actions) {
  for (const auto& [key, run] : runs_) machine_.close(run);
  runs_.clear();
  early_.clear();
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    if (calls_[i].missing == 0) continue;
    actions.done.push_back({calls_[i].id, status});
    calls_[i] = {};
    calls_.give_back(i);
  }
}

}  // namespace gleaner::executor
