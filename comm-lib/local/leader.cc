#include "comm-lib/local/leader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm-lib/local/rendezvous.h"
#include "common/base/differing_operations.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

constexpr size_t kReservePerTurn = 4 << 20;

}  // namespace

Leader::Leader(const Env& env, const Options& options, const kernels::Kernels* kernels, Events* events)
    : LocalRank(env, options, kernels, events), ranks_(options.local_size), record_(options.local_size) {}

absl::StatusOr<std::unique_ptr<Group>> Leader::create(const Env& env, const Options& options,
                                                      const kernels::Kernels* kernels, Events* events) {
  auto leader = std::unique_ptr<Leader>(new Leader(env, options, kernels, events));
  GLN_RETURN_IF_ERROR(leader->open());
  GLN_ASSIGN_OR_RETURN(leader->listener_, listen_at(socket_name(options)));
  leader->watch(leader->listener_.get());
  return leader;
}

void Leader::on_tick() {
  if (overdue(absl::ZeroDuration())) die(absl::DeadlineExceededError(missing()));
}

std::string Leader::missing() const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) {
    if (ranks_[rank] == nullptr) ranks.push_back(rank);
  }
  return absl::StrCat("local rank", ranks.size() > 1 ? "s " : " ", absl::StrJoin(ranks, ", "), " of worker ",
                      options_.worker, " did not connect within ", absl::FormatDuration(options_.timeout),
                      "; expected ", options_.local_size, " local ranks on this machine, in one network namespace",
                      last_refusal_.empty() ? "" : "; refused: ", last_refusal_);
}

void Leader::on_readable(int descriptor) {
  if (descriptor == listener_.get()) return accept();
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = *peers_[i];
    if (descriptor != peer.channel.descriptor() && descriptor != peer.process.get()) continue;
    return receive(peer, descriptor == peer.process.get());
  }
}

void Leader::accept() {
  while (true) {
    auto socket = accept_from(listener_);
    if (!socket.ok()) return die(socket.status());
    if (!socket->has_value()) return;
    peers_.push_back(std::make_unique<Peer>(**std::move(socket)));
    Peer& peer = *peers_.back();
    watch(peer.channel.descriptor());
    if (const auto pid = peer_of(peer.channel.descriptor()); !pid.ok()) refuse(peer, pid.status());
  }
}

absl::Status Leader::greet(Peer& peer, const HelloPayload& hello) {
  absl::Status status = check_hello(hello, options_);
  if (absl::IsPermissionDenied(status)) return status;
  if (!status.ok()) {
    // The process belongs to this job, so no other process will come with this local rank.
    die(status);
    return absl::OkStatus();
  }
  if (ranks_[hello.local_rank] != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("another process is ", name_of(hello.local_rank),
                                                 ": give every process its own GLEANER_LOCAL_RANK"));
  }
  peer.rank = hello.local_rank;
  peer.proved = true;
  ranks_[peer.rank] = &peer;
  watch_process_of(peer);
  begin_if_complete();
  return absl::OkStatus();
}

void Leader::refuse(Peer& peer, const absl::Status& status) {
  last_refusal_ = std::string(status.message());
  env_.log->warning("refused a local rank", "worker", options_.worker, "reason", status.message());
  Message message;
  message.type = MessageType::kFail;
  message.detail = code_of(status);
  peer.channel.queue(message, text_of(status));
  peer.channel.flush();
  LocalRank::close(peer);
}

void Leader::begin_if_complete() {
  if (std::find(ranks_.begin() + 1, ranks_.end(), nullptr) != ranks_.end()) return;
  unwatch(listener_.get());
  listener_.reset();
  for (const auto& peer : peers_) {
    if (!peer->proved) LocalRank::close(*peer);
  }
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) {
    Message message;
    message.type = MessageType::kWelcome;
    ranks_[rank]->channel.queue(message, payload_of(welcome_of(options_, rank)));
  }
  welcome();
}

void Leader::on_broken(Peer& peer, const absl::Status& status) {
  if (!peer.proved) return refuse(peer, status);
  die(absl::Status(status.code(), absl::StrCat(name_of(peer.rank), ": ", status.message())));
}

void Leader::on_gone(Peer& peer) {
  if (peer.proved && !peer.left) {
    return die(absl::UnavailableError(
        absl::StrCat(name_of(peer.rank), " is lost: its process ended without leaving the job")));
  }
  LocalRank::close(peer);
}

absl::Status Leader::on_left(Peer& peer) {
  peer.left = true;
  departed_ = absl::UnavailableError(absl::StrCat(name_of(peer.rank), " has left the job"));
  if (record_.open()) die(departed_);
  return absl::OkStatus();
}

absl::Status Leader::on_message(Peer& peer, const Message& message, ConstBytes payload, Descriptor) {
  if (!peer.proved) {
    if (message.type != MessageType::kHello) {
      return absl::InvalidArgumentError(absl::StrCat("expected HELLO, got ", local::name_of(message.type)));
    }
    HelloPayload hello;
    GLN_RETURN_IF_ERROR(read_payload(payload, hello, message.type));
    return greet(peer, hello);
  }
  if (message.type == MessageType::kFail) {
    die(status_of(message, payload));
    return absl::OkStatus();
  }
  if (welcomed() && !peer.left) {
    if (message.type == MessageType::kLeave) return on_left(peer);
    if (message.type == MessageType::kReady) return on_ready(peer.rank, message);
    if (message.type == MessageType::kReduced) {
      GLN_ASSIGN_OR_RETURN(const PushPullRecord::Next next,
                           record_.on_reduced(peer.rank, message.tensor, message.step));
      go_on(message.tensor, next);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(local::name_of(message.type), " was not expected at this time"));
}

MutableBytes Leader::sums_beside(uint32_t tensor) const {
  const auto next = std::upper_bound(batches_.begin(), batches_.end(), tensor,
                                     [](uint32_t id, const Batch& batch) { return id < batch.layout.first; });
  if (next == batches_.begin()) return {};
  const Batch& batch = *std::prev(next);
  return {batch.segment->data() + batch.layout.sums_begin(), batch.layout.sums_bytes};
}

absl::Status Leader::on_registered(Layout layout) {
  GLN_ASSIGN_OR_RETURN(auto segment, Segment::create(layout.total_bytes()));
  for (size_t i = 0; i < layout.offsets.size(); ++i) {
    const auto tensor = static_cast<uint32_t>(layout.first + i);
    record_.add(reducers(requests_.bytes_of(tensor), options_.local_size));
  }
  batches_.push_back({std::move(layout), std::move(segment)});
  return absl::OkStatus();
}

// Reserves only a part of the memory per turn, since the kernel zeroes the memory, which takes time.
void Leader::work() {
  if (handed_out_ == batches_.size()) return;
  Batch& batch = batches_[handed_out_];
  if (!batch.segment->reserved()) {
    if (const absl::Status status = batch.segment->reserve(kReservePerTurn); !status.ok()) return die(status);
  } else if (welcomed()) {
    hand_out(batch);
  }
}

bool Leader::has_more_work() const {
  return handed_out_ < batches_.size() && (welcomed() || !batches_[handed_out_].segment->reserved());
}

void Leader::hand_out(Batch& batch) {
  Message message;
  message.type = MessageType::kSegment;
  message.tensor = batch.layout.first;
  message.step = batch.layout.offsets.size();
  const SegmentPayload payload{batch.layout.total_bytes(), batch.layout.digest};
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) {
    auto copy = batch.segment->duplicate();
    if (!copy.ok()) return die(copy.status());
    ranks_[rank]->channel.queue(message, payload_of(payload), *std::move(copy));
  }
  batch.segment->close_file();
  requests_.attach(batch.layout, batch.segment->data());
  ++handed_out_;
}

void Leader::on_stage(const Requests::Finished& finished) {
  Message message;
  message.tensor = finished.tensor;
  message.step = finished.step;
  message.detail = static_cast<uint8_t>(finished.op);
  absl::Status status;
  if (finished.stage == Requests::Stage::kCopyingIn) {
    status = on_ready(0, message);
  } else {
    const auto next = record_.on_reduced(0, finished.tensor, finished.step);
    status = next.status();
    if (next.ok()) go_on(finished.tensor, *next);
  }
  if (!status.ok()) die(absl::InternalError(status.message()));
}

absl::Status Leader::on_ready(uint32_t rank, const Message& message) {
  if (!departed_.ok()) {
    die(departed_);
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(const PushPullRecord::Next next,
                       record_.on_ready(rank, message.tensor, message.step, static_cast<ReduceOp>(message.detail)));
  go_on(message.tensor, next);
  return absl::OkStatus();
}

void Leader::go_on(uint32_t tensor, PushPullRecord::Next next) {
  if (next == PushPullRecord::Next::kReduce) {
    Message message;
    message.type = MessageType::kReduce;
    message.tensor = tensor;
    message.step = record_.step(tensor);
    for (uint32_t rank = 1; rank < record_.reducers(tensor); ++rank) ranks_[rank]->channel.queue(message);
    if (const absl::Status status = requests_.reduce(tensor, message.step); !status.ok()) die(status);
  } else if (next == PushPullRecord::Next::kNetwork) {
    events_->on_reduced(tensor, record_.op(tensor), requests_.sum_of(tensor), requests_.result_of(tensor));
  } else if (next == PushPullRecord::Next::kRefuse) {
    // Other workers sum this push_pull without this group, so the group's next one must not be taken for it.
    die(differing_ops(tensor));
  }
}

absl::Status Leader::differing_ops(uint32_t tensor) const {
  const auto asked = [&](ReduceOp op) {
    return AskedOperation{LocalRank::name_of(record_.first_that_asks_for(op, tensor)), op};
  };
  return differing_operations(requests_.name_of(tensor), record_.step(tensor), asked(ReduceOp::kSum),
                              asked(ReduceOp::kAverage));
}

void Leader::publish(uint32_t tensor, const absl::Status& status) {
  if (dead()) return;
  if (record_.summed(tensor)) return spread(tensor, status);
  die(absl::InternalError(absl::StrCat("publish() of tensor ", tensor, " without an on_reduced() before it")));
}

void Leader::spread(uint32_t tensor, const absl::Status& status) {
  Message message;
  message.type = MessageType::kResult;
  message.tensor = tensor;
  message.step = record_.step(tensor);
  message.detail = code_of(status);
  record_.publish(tensor);
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) ranks_[rank]->channel.queue(message, text_of(status));
  if (const absl::Status mine = requests_.finish(tensor, message.step, status); !mine.ok()) die(mine);
}

void Leader::flush() {
  for (const auto& peer : peers_) LocalRank::flush(*peer);
  std::erase_if(peers_, [](const auto& peer) { return !peer->proved && peer->channel.descriptor() < 0; });
}

void Leader::close(const Message& last, ConstBytes payload) {
  if (listener_.valid()) unwatch(listener_.get());
  listener_.reset();
  for (const auto& peer : peers_) {
    peer->channel.queue(last, payload);
    peer->channel.flush();
    LocalRank::close(*peer);
  }
}

bool Leader::idle() const {
  return dead() || (requests_.in_flight() == 0 && std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
                      return peer->channel.drained();
                    }));
}

}  // namespace gleaner::local
