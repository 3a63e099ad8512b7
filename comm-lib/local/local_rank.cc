#include "comm-lib/local/local_rank.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/local/rendezvous.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

constexpr int64_t kTickNanoseconds = 10'000'000;
constexpr size_t kBytesPerTurn = 2 << 20;  // bytes of memory touched: some hundred microseconds
constexpr int kPacketsPerTurn = 64;        // of one peer

}  // namespace

LocalRank::LocalRank(const Env& env, const Options& options, const kernels::Kernels* kernels, Events* events)
    : env_(env),
      options_(options),
      events_(events),
      requests_(options.local_rank, options.local_size, kernels, events),
      opened_(env.clock->since_start()) {}

absl::Status LocalRank::open() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  timer_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.valid() || !timer_.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("can't make an event loop: ", std::strerror(errno),
                                                     "; raise the limit of open files (ulimit -n)"));
  }
  const itimerspec schedule{{0, kTickNanoseconds}, {0, 1}};
  timerfd_settime(timer_.get(), 0, &schedule, nullptr);
  watch(timer_.get());
  return absl::OkStatus();
}

absl::Status LocalRank::register_tensors(std::span<const TensorShape> tensors) {
  GLN_RETURN_IF_ERROR(failure_);
  if (tensors.empty()) return absl::OkStatus();
  auto layout = lay_out(tensors, static_cast<uint32_t>(requests_.tensors()), options_.local_size);
  absl::Status status = layout.status();
  if (status.ok()) {
    requests_.add(tensors);
    status = on_registered(*std::move(layout));
  }
  if (!status.ok()) fail(status);
  return status;
}

absl::Status LocalRank::start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output,
                              const device::Access& access) {
  GLN_RETURN_IF_ERROR(failure_);
  GLN_RETURN_IF_ERROR(departed_);
  GLN_RETURN_IF_ERROR(requests_.start(tensor, op, input, output, access));
  if (requests_.has_gpu() && !watches_copies_) use_gpu();
  return absl::OkStatus();
}

void LocalRank::fail(const absl::Status& status) {
  if (dead()) return;
  const absl::StatusCode code = status.ok() ? absl::StatusCode::kAborted : status.code();
  die(absl::Status(code, absl::StrCat(name_of(options_.local_rank), " failed: ", status.message())));
  failure_told_ = true;
}

bool LocalRank::has_work() const {
  if (dead()) return !failure_told_;
  return requests_.has_work() || has_more_work();
}

void LocalRank::poll() {
  if (failure_told_) return;
  handle_ready();
  if (!dead()) take_copies();
  if (!dead()) work();
  if (!dead()) offer_new_zones();
  if (!dead()) do_portions();
  if (!dead()) flush();
  if (dead() && !std::exchange(failure_told_, true)) events_->on_failed(failure_);
}

void LocalRank::handle_ready() {
  std::array<epoll_event, 32> ready;
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count && !dead(); ++i) {
    const int descriptor = ready[static_cast<size_t>(i)].data.fd;
    if (descriptor == requests_.copies_descriptor()) continue;  // take_copies() follows
    if (descriptor != timer_.get()) {
      on_readable(descriptor);
      continue;
    }
    uint64_t ticks = 0;
    if (read(descriptor, &ticks, sizeof(ticks)) > 0) on_tick();
  }
}

void LocalRank::use_gpu() {
  watches_copies_ = true;
  watch(requests_.copies_descriptor());
  absl::Status status = absl::UnavailableError("GLEANER_GPU_MEMORY is 0");
  if (options_.gpu_bytes > 0) status = requests_.can_sum_on_gpu(options_.gpu_bytes, options_.gpu_kernels);
  if (!status.ok()) env_.log->info("the CPU sums tensors of GPUs", "reason", status.message());
  Message message;
  message.type = MessageType::kGpu;
  message.detail = status.ok() ? 1 : 0;
  tell_leader(message, {});
}

// Sums on GPUs begin when a tensor of each rank is on a GPU, so this rank has told the leader of it.
absl::Status LocalRank::on_zones(const Message& message, ConstBytes payload) {
  if (!requests_.has_gpu()) {
    return absl::InvalidArgumentError(absl::StrCat(local::name_of(message.type), " came to a rank without a GPU"));
  }
  if (message.type == MessageType::kZone) return open_zone(message.tensor, message.detail, payload);
  if (message.type == MessageType::kUse) {
    env_.log->info("the GPUs sum tensors", "first", requests_.name_of(message.tensor));
    requests_.use(message.tensor);
  } else {
    offers_zones_ = true;
    offer_new_zones();
  }
  return absl::OkStatus();
}

void LocalRank::offer_new_zones() {
  for (; offers_zones_ && offered_ < requests_.batches().size() && !dead(); ++offered_) {
    const uint32_t batch = requests_.batches()[offered_];
    const auto zone = requests_.offer(batch);
    if (!zone.ok()) {
      tell_opened(batch, zone.status());
      continue;
    }
    Message message;
    message.type = MessageType::kZone;
    message.detail = static_cast<uint8_t>(options_.local_rank);
    message.tensor = batch;
    tell_leader(message, payload_of(*zone));
  }
}

absl::Status LocalRank::open_zone(uint32_t batch, uint32_t owner, ConstBytes payload) {
  device::SharedMemory zone;
  GLN_RETURN_IF_ERROR(read_payload(payload, zone, MessageType::kZone));
  const absl::Status status = requests_.open(batch, owner, zone);
  if (!status.ok() || requests_.is_open(batch)) tell_opened(batch, status);
  return absl::OkStatus();
}

void LocalRank::tell_opened(uint32_t batch, const absl::Status& status) {
  if (!status.ok()) {
    env_.log->info("the CPU sums tensors of GPUs", "first", requests_.name_of(batch), "reason", status.message());
  }
  Message message;
  message.type = MessageType::kOpened;
  message.detail = code_of(status);
  message.tensor = batch;
  tell_leader(message, text_of(status));
}

void LocalRank::take_copies() {
  const absl::Status status = requests_.take_copies();
  if (status.ok()) return;
  die(absl::Status(status.code(), absl::StrCat(name_of(options_.local_rank), ": ", status.message())));
}

void LocalRank::do_portions() {
  size_t budget = kBytesPerTurn;
  while (!dead()) {
    const auto finished = requests_.advance(budget);
    if (!finished) return;
    if (finished->stage == Requests::Stage::kCopyingOut) {
      events_->on_done(finished->tensor, finished->result);
    } else {
      on_stage(*finished);
    }
  }
}

void LocalRank::receive(Peer& peer, bool ended) {
  Channel::Packet packet;
  for (int i = 0; i < kPacketsPerTurn && !dead() && peer.channel.descriptor() >= 0; ++i) {
    const Channel::Receipt receipt = peer.channel.receive(packet);
    if (receipt == Channel::Receipt::kPacket) {
      take_apart(peer, packet);
    } else {
      if (ended || receipt == Channel::Receipt::kClosed) on_gone(peer);
      return;
    }
  }
}

void LocalRank::take_apart(Peer& peer, Channel::Packet& packet) {
  PacketReader reader(packet.bytes);
  Message message;
  ConstBytes payload;
  while (!dead() && peer.channel.descriptor() >= 0) {
    const absl::StatusOr<bool> more = reader.next(message, payload);
    if (more.ok() && !*more) return;
    const absl::Status status =
        more.ok() ? on_message(peer, message, payload, std::move(packet.attached)) : more.status();
    if (!status.ok()) return on_broken(peer, status);
  }
}

void LocalRank::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

// Closing the descriptor is not enough: a child that the process forked may hold the same socket.
void LocalRank::unwatch(int descriptor) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void LocalRank::watch_process_of(Peer& peer) {
  const auto pid = peer_of(peer.channel.descriptor());
  if (pid.ok()) peer.process = watch_process(*pid);
  if (peer.process.valid()) watch(peer.process.get());
}

void LocalRank::flush(Peer& peer) {
  if (peer.channel.drained() && !peer.blocked) return;
  peer.channel.flush();
  const bool blocked = !peer.channel.drained();
  if (blocked == peer.blocked) return;
  peer.blocked = blocked;
  epoll_event event{};
  event.events = blocked ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.fd = peer.channel.descriptor();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, event.data.fd, &event);
}

void LocalRank::close(Peer& peer) {
  if (peer.channel.descriptor() < 0) return;
  unwatch(peer.channel.descriptor());
  peer.channel.close();
  if (peer.process.valid()) unwatch(peer.process.get());
  peer.process.reset();
}

void LocalRank::welcome() {
  welcomed_ = true;
  unwatch(timer_.get());
  timer_.reset();
  events_->on_connected();
}

void LocalRank::die(const absl::Status& status) {
  if (dead()) return;
  failure_ = status.ok() ? absl::UnknownError("a local rank failed and gave no reason") : status;
  if (timer_.valid()) unwatch(timer_.get());
  timer_.reset();
  requests_.mark_copies();
  if (watches_copies_) unwatch(requests_.copies_descriptor());
  Message last;
  last.type = MessageType::kFail;
  last.detail = code_of(failure_);
  close(last, text_of(failure_));
}

bool LocalRank::leave() {
  const bool has_failed = dead();
  say_goodbye();
  return requests_.close(has_failed);
}

void LocalRank::say_goodbye() {
  if (dead()) return;
  Message last;
  last.type = MessageType::kLeave;
  if (welcomed_ && requests_.in_flight() == 0) return close(last, {});
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      name_of(options_.local_rank), " left ", welcomed_ ? "with push_pulls in flight" : "before the start"));
  last.type = MessageType::kFail;
  last.detail = code_of(status);
  close(last, text_of(status));
}

std::string LocalRank::name_of(uint32_t rank) const {
  return absl::StrCat("local rank ", rank, " of worker ", options_.worker);
}

}  // namespace gleaner::local
