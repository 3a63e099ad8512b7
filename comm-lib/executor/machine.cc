#include "comm-lib/executor/machine.h"

#include <utility>

#include "common/base/faults.h"

namespace gleaner::executor {

uint32_t Machine::open(RunOwner* owner, StartQueue* queue, const Subject& subject, const Order& order,
                       const Program* program, uint64_t elements, const Cursor::Types& types) {
  const uint32_t run = take(owner, queue, subject, order, elements * size_of(types.partial()));
  runs_[run].cursor.open(program, elements, types, &arrived_);
  return run;
}

uint32_t Machine::open(RunOwner* owner, StartQueue* queue, const Subject& subject, const Order& order,
                       const Program* program, std::span<const uint64_t> begins) {
  const uint32_t run = take(owner, queue, subject, order, begins.back());
  runs_[run].cursor.open(program, begins, &arrived_);
  return run;
}

uint32_t Machine::take(RunOwner* owner, StartQueue* queue, const Subject& subject, const Order& order, uint64_t bytes) {
  const uint32_t index = runs_.take();
  Run& run = runs_[index];
  run.owner = owner;
  run.queue = queue;
  run.subject = subject;
  run.order = order;
  run.bytes = bytes;
  run.number = opened_++;
  run.piece = kNone;
  run.waits_for = kNone;
  run.is_started = false;
  run.is_wanted = false;
  return index;
}

void Machine::close(uint32_t index) {
  Run& run = runs_[index];
  run.cursor.close();
  run.waits_for = kNone;
  run.number = UINT64_MAX;
  runs_.give_back(index);
}

void Machine::clear() {
  for (StartQueue* const queue : queues_) queue->clear();
  peers_.clear();
}

void Machine::start(uint32_t index, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  run.is_started = true;
  run.queue->push({run.order, index, run.number});
  admit_if_wanted(index, now, actions);
}

void Machine::add_queue(StartQueue* queue) {
  queues_.push_back(queue);
  queue->set_limit(limit_bytes_);
}

void Machine::remove_queue(StartQueue* queue) { std::erase(queues_, queue); }

void Machine::set_limit(uint64_t bytes) {
  limit_bytes_ = bytes;
  for (StartQueue* const queue : queues_) queue->set_limit(bytes);
}

void Machine::begin_runs(absl::Duration now, Actions& actions) {
  for (StartQueue* const queue : queues_) begin_runs(*queue, now, actions);
}

void Machine::begin_runs(StartQueue& queue, absl::Duration now, Actions& actions) {
  while (!queue.empty()) {
    const StartQueue::Waiting waiting = queue.front();
    const Run& run = runs_[waiting.run];
    const bool waits = run.number == waiting.number && !run.cursor.has_begun();
    if (waits && !queue.has_room(run.bytes)) return;
    queue.pop();
    if (waits) begin(waiting.run, now, actions);
  }
}

// Begins a run that a peer has begun, if this worker has started it.
void Machine::admit_if_wanted(uint32_t index, absl::Duration now, Actions& actions) {
  const Run& run = runs_[index];
  if (!run.is_wanted || !run.is_started || run.cursor.has_begun()) return;
  if (GLN_MUTATION("a partition that a peer has begun waits for its turn")) return;
  if (!run.queue->has_room(run.bytes)) {
    GLN_RARE("executor: a partition begins beyond the limit, since a peer has begun it");
  }
  begin(index, now, actions);
}

void Machine::begin(uint32_t index, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  run.queue->begin(run.bytes);
  run.owner->begin(run);
  recorder_.on_begun(run);
  advance(index, now, actions);
}

void Machine::advance(uint32_t index, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  while (true) {
    Cursor::Outcome outcome = run.cursor.advance(*kernels_);
    const Program::Operation* const operation = outcome.operation;
    switch (outcome.event) {
      case Cursor::Event::kSend:
        peers_.send(operation->peer,
                    {.subject = run.subject,
                     .order = run.order,
                     .schedule_step = operation->step,
                     .chunk = operation->slice.first,
                     .type = run.cursor.type_of(*operation),
                     .payload = std::move(outcome.slice)},
                    now, actions);
        break;
      case Cursor::Event::kReceived:
        recorder_.on_received(run, *operation);
        break;
      case Cursor::Event::kBlocked:
        run.waits_for = operation->peer;
        run.ticks_blocked = 0;
        peers_.block(run.waits_for, now);
        return;
      case Cursor::Event::kEnded:
        run.owner->take_results(run);
        recorder_.on_ended(run);
        run.queue->end(run.bytes);
        run.owner->finish(index, actions);
        return;
    }
  }
}

void Machine::deliver(uint32_t index, uint32_t sender, Buffer payload, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  const uint32_t source = run.cursor.program().source_of(sender);
  recorder_.on_arrived(run, source);
  run.cursor.add(source, std::move(payload));
  run.is_wanted = true;
  if (!run.cursor.has_begun()) return admit_if_wanted(index, now, actions);
  if (run.waits_for != sender) return;
  run.waits_for = kNone;
  peers_.unblock(sender);
  advance(index, now, actions);
}

void Machine::want(uint32_t index, absl::Duration now, Actions& actions) {
  runs_[index].is_wanted = true;
  admit_if_wanted(index, now, actions);
}

void Machine::on_connected(uint32_t peer, Actions& actions) {
  peers_.on_connected(peer, actions);
  // A kAwait may have been lost with the last connection.
  for (uint32_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].waits_for == peer) runs_[i].ticks_blocked = 0;
  }
}

void Machine::on_tick(absl::Duration now, Actions& actions) {
  begin_runs(now, actions);
  ask_peers(actions);
  peers_.tick(actions);
}

void Machine::ask_peers(Actions& actions) {
  if (GLN_MUTATION("workers do not ask for the slices that they wait for")) return;
  for (uint32_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (run.waits_for == kNone || ++run.ticks_blocked != 2) continue;
    if (run.cursor.has_slice_from(run.cursor.program().source_of(run.waits_for))) continue;
    if (peers_.await(run.waits_for, run.subject, actions)) {
      GLN_RARE("executor: a worker asks a peer to begin a partition");
    }
  }
}

}  // namespace gleaner::executor
