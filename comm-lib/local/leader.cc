#include "comm-lib/local/leader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm-lib/device/kept.h"
#include "comm-lib/local/rendezvous.h"
#include "common/base/differing_operations.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

constexpr size_t kReservePerTurn = 4 << 20;

// Returns "local ranks 1, 3".
std::string names_of_missing(const std::vector<Peer*>& ranks) {
  std::vector<size_t> missing;
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank] == nullptr) missing.push_back(rank);
  }
  return absl::StrCat("local rank", missing.size() > 1 ? "s " : " ", absl::StrJoin(missing, ", "));
}

bool is_about_gpus(MessageType type) {
  return type == MessageType::kGpu || type == MessageType::kZone || type == MessageType::kOpened;
}

}  // namespace

Leader::~Leader() {
  if (leave()) return;
  for (Batch& batch : batches_) device::keep(std::move(batch.segment));  // stays mapped
}

Leader::Leader(const Env& env, const Options& options, const kernels::Kernels* kernels, Events* events)
    : LocalRank(env, options, kernels, events),
      ranks_(options.local_size),
      record_(options.local_size),
      gpus_(options.local_size) {}

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
  return absl::StrCat(names_of_missing(ranks_), " of worker ", options_.worker, " did not connect within ",
                      absl::FormatDuration(options_.timeout), "; expected ", options_.local_size,
                      " local ranks on this machine, in one network namespace",
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
    if (is_about_gpus(message.type)) return on_gpus(peer.rank, message, payload);
    if (message.type == MessageType::kReduced || message.type == MessageType::kPlaced) {
      return on_slice(peer.rank, message.type, message.tensor, message.step);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(local::name_of(message.type), " was not expected at this time"));
}

absl::Status Leader::on_gpus(uint32_t rank, const Message& message, ConstBytes payload) {
  std::vector<GpuAgreement::Outgoing> outgoing;
  GLN_RETURN_IF_ERROR(gpus_.on_message(rank, message, payload, outgoing));
  for (const GpuAgreement::Outgoing& each : outgoing) {
    if (each.rank != 0) {
      ranks_[each.rank]->channel.queue(each.message, each.payload());
    } else if (const absl::Status status = on_zones(each.message, each.payload()); !status.ok()) {
      die(status);
    }
  }
  return absl::OkStatus();
}

void Leader::tell_leader(const Message& message, ConstBytes payload) {
  if (const absl::Status status = on_gpus(0, message, payload); !status.ok()) die(status);
}

void Leader::tell_all(const Message& message) {
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) ranks_[rank]->channel.queue(message);
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
  gpus_.add(layout.first);
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
  requests_.attach(batch.layout, *batch.segment);
  batch.segment->close_file();
  ++handed_out_;
}

void Leader::on_stage(const Requests::Finished& finished) {
  Message message;
  message.tensor = finished.tensor;
  message.step = finished.step;
  message.detail = static_cast<uint8_t>(finished.op);
  message.by_gpu = finished.by_gpu ? 1 : 0;
  absl::Status status;
  if (finished.stage == Requests::Stage::kCopyingIn) {
    status = on_ready(0, message);
  } else {
    const bool is_summed = finished.stage == Requests::Stage::kReducing;
    status = on_slice(0, is_summed ? MessageType::kReduced : MessageType::kPlaced, finished.tensor, finished.step);
  }
  if (!status.ok()) die(absl::InternalError(status.message()));
}

// A rank has summed its slice, or placed that of the result.
absl::Status Leader::on_slice(uint32_t rank, MessageType type, uint32_t tensor, uint64_t step) {
  GLN_ASSIGN_OR_RETURN(const PushPullRecord::Next next, type == MessageType::kReduced
                                                            ? record_.on_reduced(rank, tensor, step)
                                                            : record_.on_placed(rank, tensor, step));
  go_on(tensor, next);
  return absl::OkStatus();
}

absl::Status Leader::on_ready(uint32_t rank, const Message& message) {
  if (!departed_.ok()) {
    die(departed_);
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(
      const PushPullRecord::Next next,
      record_.on_ready(rank, message.tensor, message.step, static_cast<ReduceOp>(message.detail), message.by_gpu != 0));
  go_on(message.tensor, next);
  return absl::OkStatus();
}

void Leader::go_on(uint32_t tensor, PushPullRecord::Next next) {
  if (next == PushPullRecord::Next::kReduce) {
    Message message = message_about(MessageType::kReduce, tensor, record_.step(tensor));
    message.by_gpu = record_.by_gpu(tensor) == 0 ? 0 : 1;
    for (uint32_t rank = 1; rank < record_.reducers(tensor); ++rank) ranks_[rank]->channel.queue(message);
    if (const absl::Status status = requests_.reduce(tensor, message.step, message.by_gpu != 0); !status.ok())
      die(status);
  } else if (next == PushPullRecord::Next::kCopy) {
    copy_to_host(tensor);
  } else if (next == PushPullRecord::Next::kGather) {
    Message message =
        message_about(MessageType::kGather, tensor, record_.step(tensor) - 1);  // the record has begun the next one
    tell_all(message);
    if (const absl::Status status = requests_.gather(tensor, message.step); !status.ok()) die(status);
  } else if (next == PushPullRecord::Next::kNetwork) {
    events_->on_reduced(tensor, record_.op(tensor), requests_.sum_of(tensor), requests_.result_of(tensor));
  } else if (next == PushPullRecord::Next::kRefuse) {
    // Other workers sum this push_pull without this group, so the group's next one must not be taken for it.
    die(differing_ops(tensor));
  }
}

void Leader::copy_to_host(uint32_t tensor) {
  Message message = message_about(MessageType::kCopy, tensor, record_.step(tensor));
  const uint64_t by_gpu = record_.by_gpu(tensor);
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) {
    if ((by_gpu >> rank & 1) != 0) ranks_[rank]->channel.queue(message);
  }
  const absl::Status mine = (by_gpu & 1) != 0 ? requests_.copy(tensor, message.step) : absl::OkStatus();
  if (!mine.ok()) die(mine);
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
  Message message = message_about(MessageType::kResult, tensor, record_.step(tensor));
  message.detail = code_of(status);
  message.by_gpu = status.ok() && record_.by_gpu(tensor) != 0 ? 1 : 0;
  record_.publish(tensor, message.by_gpu != 0);
  for (uint32_t rank = 1; rank < options_.local_size; ++rank) ranks_[rank]->channel.queue(message, text_of(status));
  if (const absl::Status mine = requests_.finish(tensor, message.step, status, message.by_gpu != 0); !mine.ok())
    die(mine);
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
