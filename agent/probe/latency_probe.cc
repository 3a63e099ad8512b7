#include "agent/probe/latency_probe.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner::probe {

LatencyProbe::LatencyProbe(const Env& env, Options options, UdpSocket socket, Address address)
    : env_(env),
      options_(std::move(options)),
      socket_(std::move(socket)),
      address_(std::move(address)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      rounds_(options_.node, options_.times),
      thread_([this] { run(); }) {}

LatencyProbe::~LatencyProbe() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::StatusOr<std::unique_ptr<LatencyProbe>> LatencyProbe::start(const Env& env, Options options) {
  if (options.secret.empty()) return absl::InvalidArgumentError("measurements need a secret");
  if (!is_node_name(options.node)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a node's name of at most 253 letters a-z, digits, '-' and '.', got '", options.node, "'"));
  }
  GLN_ASSIGN_OR_RETURN(UdpSocket socket, UdpSocket::bind(options.listen));
  GLN_ASSIGN_OR_RETURN(Address address, socket.local_address());
  return std::unique_ptr<LatencyProbe>(
      new LatencyProbe(env, std::move(options), std::move(socket), std::move(address)));
}

void LatencyProbe::set_peers(PeerList peers) {
  absl::MutexLock lock(&mutex_);
  rounds_.set_peers(std::move(peers));
}

void LatencyProbe::set_bits_per_second(double speed) {
  absl::MutexLock lock(&mutex_);
  rounds_.set_pace(pace_for(speed));
}

void LatencyProbe::restore(const std::vector<api::PeerLatency>& entries) {
  absl::MutexLock lock(&mutex_);
  rounds_.restore(entries);
}

LatencyReport LatencyProbe::report() const {
  absl::MutexLock lock(&mutex_);
  return {rounds_.table().entries(), rounds_.coverage(env_.clock->now()), rounds_.sent(), rounds_.lost(), refused_};
}

Texts LatencyProbe::node_names() const {
  absl::MutexLock lock(&mutex_);
  return rounds_.table().node_of();
}

// Waits for the time, or until a packet arrives if that is earlier and wanted. Returns false when the probe stops.
bool LatencyProbe::wait(absl::Duration time, bool for_packets) const {
  std::array<pollfd, 2> entries = {pollfd{stop_.get(), POLLIN, 0}, pollfd{for_packets ? socket_.fd() : -1, POLLIN, 0}};
  const timespec limit = absl::ToTimespec(time);
  ppoll(entries.data(), entries.size(), &limit, nullptr);
  return (entries[0].revents & POLLIN) == 0;
}

void LatencyProbe::run() {
  name_this_thread("gln-latency");
  absl::Duration second = env_.clock->since_start();  // begin of the present second, in which `packets` were read
  uint32_t packets = 0;
  absl::Duration idle;
  while (wait(idle, packets < kMostPackets)) {
    if (env_.clock->since_start() - second >= absl::Seconds(1)) {
      second = env_.clock->since_start();
      packets = 0;
    }
    while (packets < kMostPackets && receive_one()) ++packets;
    ask();
    absl::MutexLock lock(&mutex_);
    idle = rounds_.idle(now());
  }
}

// Sends the next question, if its time has come.
void LatencyProbe::ask() {
  std::optional<Question> question;
  {
    absl::MutexLock lock(&mutex_);
    question = rounds_.next(now());
  }
  if (!question.has_value()) return;
  Asked asked;
  absl::Status sent = env_.random->fill(asked.nonce);
  const absl::StatusOr<std::vector<SocketAddress>> peer = gleaner::resolve(Address{question->host, options_.peer_port});
  if (sent.ok()) sent = peer.status();
  if (sent.ok()) {
    const LatencyPacket packet = make_question(question->sequence, question->round, asked.nonce, options_.secret);
    asked.at = env_.clock->now();
    sent = socket_.send(std::as_bytes(std::span(&packet, 1)), peer->front());
    asked_ = asked;
  }
  // The question counts as lost after its timeout.
  if (!sent.ok()) env_.log->debug("a question was not sent", "peer", question->host, "why", sent.message());
}

// Takes one packet, or one error of the socket. Returns false if none waits.
bool LatencyProbe::receive_one() {
  std::array<std::byte, sizeof(LatencyPacket) + 1>
      bytes;  // one more, so that a longer packet is not cut to a valid one
  const absl::StatusOr<std::optional<UdpSocket::Received>> received = socket_.receive(bytes);
  if (!received.ok()) {
    env_.log->debug("no packet was received", "why", received.status().message());
    return true;
  }
  if (!received->has_value()) return false;
  const UdpSocket::Received& got = **received;
  const std::optional<LatencyPacket> packet = read_packet(std::span(bytes).first(got.bytes), options_.secret);
  if (packet.has_value() && packet->kind == PacketKind::kQuestion) {
    answer(*packet, got);
    return true;
  }
  absl::MutexLock lock(&mutex_);
  if (!packet.has_value()) {
    ++refused_;
  } else if (asked_.has_value() && packet->nonce == asked_->nonce) {  // else the answer is late
    rounds_.answered(node_of(*packet), got.at - asked_->at - held_of(*packet), now());
    asked_.reset();
  }
  return true;
}

void LatencyProbe::answer(const LatencyPacket& question, const UdpSocket::Received& received) const {
  const LatencyPacket packet = make_answer(question, options_.node, env_.clock->now() - received.at, options_.secret);
  const absl::Status sent = socket_.send(std::as_bytes(std::span(&packet, 1)), received.from);
  if (!sent.ok()) env_.log->debug("an answer was not sent", "why", sent.message());
}

}  // namespace gleaner::probe
