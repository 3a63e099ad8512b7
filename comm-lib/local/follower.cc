#include "comm-lib/local/follower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/kept.h"
#include "comm-lib/local/rendezvous.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

// With this delay the leader fails first, and its error names the missing ranks.
constexpr absl::Duration kGrace = absl::Seconds(2);

bool is_about_zones(MessageType type) {
  return type == MessageType::kOffer || type == MessageType::kZone || type == MessageType::kUse;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> Follower::create(const Env& env, const Options& options,
                                                        const kernels::Kernels* kernels, Events* events) {
  auto follower = std::unique_ptr<Follower>(new Follower(env, options, kernels, events));
  GLN_RETURN_IF_ERROR(follower->open());
  return follower;
}

void Follower::on_tick() {
  if (leader_ == nullptr) connect();
  if (dead()) return;
  if (leader_ == nullptr && overdue(absl::ZeroDuration())) {
    return die(absl::DeadlineExceededError(
        absl::StrCat(name_of(0), " did not listen within ", absl::FormatDuration(options_.timeout), ": ",
                     name_of(options_.local_rank),
                     " expects it on the same machine, in the same network namespace, with the same token")));
  }
  if (overdue(kGrace)) {
    die(absl::DeadlineExceededError(absl::StrCat(name_of(0), " is connected, but not all ", options_.local_size,
                                                 " local ranks connected within ",
                                                 absl::FormatDuration(options_.timeout + kGrace))));
  }
}

Follower::~Follower() {
  if (leave()) return;
  for (std::unique_ptr<Segment>& segment : segments_) device::keep(std::move(segment));  // stays mapped
}

void Follower::connect() {
  auto socket = connect_to(socket_name(options_));
  if (!socket.ok()) return die(socket.status());
  if (!socket->has_value()) return;
  if (const auto pid = peer_of((*socket)->get()); !pid.ok()) return die(pid.status());
  leader_ = std::make_unique<Peer>(**std::move(socket));
  watch(leader_->channel.descriptor());
  watch_process_of(*leader_);
  Message message;
  message.type = MessageType::kHello;
  leader_->channel.queue(message, payload_of(hello_of(options_)));
}

void Follower::on_readable(int descriptor) {
  if (leader_ != nullptr) receive(*leader_, descriptor == leader_->process.get());
}

void Follower::on_broken(Peer&, const absl::Status& status) {
  die(absl::Status(status.code(), absl::StrCat(name_of(options_.local_rank), " can't go on with ", name_of(0), ": ",
                                               status.message())));
}

void Follower::on_gone(Peer& peer) {
  if (peer.left) return LocalRank::close(peer);
  die(absl::UnavailableError(absl::StrCat(name_of(0), " is lost: its process ended without leaving the job")));
}

absl::Status Follower::on_left() {
  leader_->left = true;
  departed_ = absl::UnavailableError(absl::StrCat(name_of(0), " has left the job"));
  if (requests_.needs_others()) die(departed_);
  return absl::OkStatus();
}

absl::Status Follower::on_message(Peer&, const Message& message, ConstBytes payload, Descriptor attached) {
  if (message.type == MessageType::kFail) {
    die(status_of(message, payload));
    return absl::OkStatus();
  }
  if (!welcomed() && message.type == MessageType::kWelcome) {
    Digest proof;
    GLN_RETURN_IF_ERROR(read_payload(payload, proof, message.type));
    GLN_RETURN_IF_ERROR(check_welcome(proof, options_));
    welcome();
    return absl::OkStatus();
  }
  if (welcomed() && !leader_->left) {
    if (message.type == MessageType::kReduce) {
      return requests_.reduce(message.tensor, message.step, message.by_gpu != 0);
    }
    if (message.type == MessageType::kCopy) return requests_.copy(message.tensor, message.step);
    if (message.type == MessageType::kResult) {
      return requests_.finish(message.tensor, message.step, status_of(message, payload), message.by_gpu != 0);
    }
    if (message.type == MessageType::kGather) return requests_.gather(message.tensor, message.step);
    if (message.type == MessageType::kLeave) return on_left();
    if (is_about_zones(message.type)) return on_zones(message, payload);
    if (message.type == MessageType::kSegment) {
      SegmentOffer offer{message.tensor, message.step, {}, std::move(attached)};
      GLN_RETURN_IF_ERROR(read_payload(payload, offer.payload, message.type));
      offered_.push_back(std::move(offer));
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(local::name_of(message.type), " was not expected at this time"));
}

void Follower::tell_leader(const Message& message, ConstBytes payload) { leader_->channel.queue(message, payload); }

absl::Status Follower::on_registered(Layout layout) {
  registered_.push_back(std::move(layout));
  return absl::OkStatus();
}

void Follower::work() {
  while (has_more_work()) {
    const absl::Status status = accept(registered_.front(), std::move(offered_.front()));
    if (!status.ok()) return die(status);
    registered_.pop_front();
    offered_.pop_front();
  }
}

bool Follower::has_more_work() const { return !registered_.empty() && !offered_.empty(); }

absl::Status Follower::accept(const Layout& mine, SegmentOffer offer) {
  if (offer.first != mine.first || offer.count != mine.offsets.size() || offer.payload.bytes != mine.total_bytes() ||
      offer.payload.digest != mine.digest) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_of(options_.local_rank), " registered ", mine.offsets.size(), " tensors from tensor ",
                     mine.first, " on, ", name_of(0), " ", offer.count, " from tensor ", offer.first,
                     " on, with other sizes or types; both must register the same tensors"));
  }
  GLN_ASSIGN_OR_RETURN(auto segment, Segment::map(std::move(offer.file), mine.total_bytes()));
  requests_.attach(mine, *segment);
  segment->close_file();
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

void Follower::on_stage(const Requests::Finished& finished) {
  Message message;
  message.type = finished.stage == Requests::Stage::kCopyingIn  ? MessageType::kReady
                 : finished.stage == Requests::Stage::kReducing ? MessageType::kReduced
                                                                : MessageType::kPlaced;
  message.tensor = finished.tensor;
  message.step = finished.step;
  message.detail = static_cast<uint8_t>(finished.op);
  message.by_gpu = finished.by_gpu ? 1 : 0;
  leader_->channel.queue(message);
}

void Follower::publish(uint32_t tensor, const absl::Status&) {
  die(absl::InternalError(absl::StrCat("publish() of tensor ", tensor, " by ", name_of(options_.local_rank),
                                       "; only local rank 0 does the network part")));
}

void Follower::flush() {
  if (leader_ != nullptr) LocalRank::flush(*leader_);
}

void Follower::close(const Message& last, ConstBytes payload) {
  if (leader_ == nullptr) return;
  leader_->channel.queue(last, payload);
  leader_->channel.flush();
  LocalRank::close(*leader_);
}

bool Follower::idle() const {
  return dead() || (requests_.in_flight() == 0 && (leader_ == nullptr || leader_->channel.drained()));
}

}  // namespace gleaner::local
