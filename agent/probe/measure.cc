#include "agent/probe/measure.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/probe/echoes.h"
#include "agent/probe/proof.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner::probe {
namespace {

constexpr size_t kBlockBytes = size_t{64} * 1024;
constexpr absl::Duration kProofTime = absl::Milliseconds(300);  // deadline of a client's proof
// Bytes received before this are not counted, because of TCP's slow start.
constexpr absl::Duration kWarmUp = absl::Milliseconds(50);
constexpr char kMore = 0, kLast = 1;  // the first byte of a block

using Block = std::vector<char>;

absl::Status send_load(const Socket& socket, const Clock& clock, absl::Duration deadline) {
  Block block(kBlockBytes, 0);
  const absl::Duration end = clock.since_start() + kLoadTime;
  do {
    block[0] = clock.since_start() < end ? kMore : kLast;
    GLN_RETURN_IF_ERROR(socket.write(block.data(), block.size(), clock, deadline));
  } while (block[0] == kMore);
  return absl::OkStatus();
}

// Receives the load and returns its rate in bits per second.
absl::StatusOr<double> receive_load(const Socket& socket, const Clock& clock, absl::Duration deadline) {
  Block block(kBlockBytes, 0);
  GLN_RETURN_IF_ERROR(socket.read(block.data(), block.size(), clock, deadline));
  const absl::Duration begin = clock.since_start();
  absl::Duration counted_from = begin, now = begin;
  double bytes = 0;
  while (block[0] == kMore) {
    GLN_RETURN_IF_ERROR(socket.read(block.data(), block.size(), clock, deadline));
    now = clock.since_start();
    if (now - begin < kWarmUp) {
      counted_from = now;
      bytes = 0;
    } else {
      bytes += static_cast<double>(block.size());
    }
  }
  if (bytes == 0 || now <= counted_from) return absl::UnavailableError("too few bytes arrived to measure");
  return 8 * bytes / absl::ToDoubleSeconds(now - counted_from);
}

absl::Status serve(const Env& env, const Socket& socket, const std::string& secret, absl::Duration most,
                   LoadBudget* budget) {
  const Clock& clock = *env.clock;
  const absl::Duration begin = clock.since_start();
  Hello hello;
  hello.is_busy = budget == nullptr || budget->allows(begin) ? 0 : 1;
  GLN_RETURN_IF_ERROR(env.random->fill(hello.nonce));
  GLN_RETURN_IF_ERROR(socket.write(&hello, sizeof(hello), clock, begin + kProofTime));
  Answer answer;
  GLN_RETURN_IF_ERROR(socket.read(&answer, sizeof(answer), clock, begin + kProofTime));
  if (!same_proof(answer.proof, prove("client", hello.nonce, answer.nonce, secret))) {
    return absl::PermissionDeniedError("the client does not know the secret");
  }
  const Proof proof = prove("server", hello.nonce, answer.nonce, secret);
  const absl::Duration deadline = begin + most;
  GLN_RETURN_IF_ERROR(socket.write(proof.data(), proof.size(), clock, deadline));
  GLN_RETURN_IF_ERROR(answer_echoes(socket, clock, deadline));
  const LoadBudget::Load load(budget, clock);
  GLN_RETURN_IF_ERROR(send_load(socket, clock, deadline));
  GLN_ASSIGN_OR_RETURN(const double rate, receive_load(socket, clock, deadline));
  std::array<uint8_t, 8> report{};  // whole bits per second, little endian
  for (size_t i = 0; i < report.size(); ++i) report[i] = static_cast<uint8_t>(static_cast<uint64_t>(rate) >> (8 * i));
  return socket.write(report.data(), report.size(), clock, deadline);
}

}  // namespace

MeasureServer::MeasureServer(const Env& env, Socket listener, Address address, std::string secret, absl::Duration rest,
                             absl::Duration most, LoadBudget* budget)
    : env_(env),
      listener_(std::move(listener)),
      address_(std::move(address)),
      secret_(std::move(secret)),
      rest_(rest),
      most_(most),
      budget_(budget),
      stop_(eventfd(0, EFD_CLOEXEC)),
      thread_([this] { run(); }) {}

MeasureServer::~MeasureServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

// Waits for `fd`, or for the time alone if `fd` is -1. Returns false when the server stops.
bool MeasureServer::wait(int fd, int milliseconds) const {
  std::array<pollfd, 2> entries = {pollfd{stop_.get(), POLLIN, 0}, pollfd{fd, POLLIN, 0}};
  poll(entries.data(), entries.size(), milliseconds);
  return (entries[0].revents & POLLIN) == 0;
}

void MeasureServer::run() {
  name_this_thread("gln-measure");
  while (wait(listener_.fd(), -1)) {
    const absl::StatusOr<Socket> peer = listener_.accept();
    if (!peer.ok()) continue;
    const absl::Status served = serve(env_, *peer, secret_, most_, budget_);
    if (absl::IsPermissionDenied(served)) env_.log->warning("a measurement was refused", "why", served.message());
    if (served.ok() && !wait(-1, static_cast<int>(absl::ToInt64Milliseconds(rest_)))) return;
  }
}

absl::StatusOr<std::unique_ptr<MeasureServer>> MeasureServer::start(const Env& env, const Address& address,
                                                                    std::string secret, absl::Duration rest,
                                                                    absl::Duration most, LoadBudget* budget) {
  if (secret.empty()) return absl::InvalidArgumentError("measurements need a secret");
  GLN_ASSIGN_OR_RETURN(Socket listener, Socket::listen(address));
  GLN_ASSIGN_OR_RETURN(Address bound, listener.local_address());
  return std::unique_ptr<MeasureServer>(
      new MeasureServer(env, std::move(listener), std::move(bound), std::move(secret), rest, most, budget));
}

absl::StatusOr<MeasuredPath> measure_path(const Env& env, const Address& peer, const std::string& secret,
                                          const MeasureLimits& limits) {
  const Clock& clock = *env.clock;
  const absl::Duration begin = clock.since_start(), deadline = begin + limits.most;
  GLN_ASSIGN_OR_RETURN(const Socket socket, Socket::connect(peer, clock, deadline));
  MeasuredPath path;
  path.round_trip = clock.since_start() - begin;
  if (socket.is_to_itself()) return absl::FailedPreconditionError("the peer is this machine itself");
  Hello hello;
  GLN_RETURN_IF_ERROR(socket.read(&hello, sizeof(hello), clock, deadline));
  const Hello ours;
  if (hello.magic != ours.magic || hello.version != ours.version) {
    return absl::UnavailableError(absl::StrCat(peer.to_string(), " is not an agent, or an agent of another version"));
  }
  if (limits.can_wait && hello.is_busy != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(peer.to_string(), " has been measured enough for now"));
  }
  Answer answer;
  GLN_RETURN_IF_ERROR(env.random->fill(answer.nonce));
  answer.proof = prove("client", hello.nonce, answer.nonce, secret);
  const absl::Duration answered = clock.since_start();
  GLN_RETURN_IF_ERROR(socket.write(&answer, sizeof(answer), clock, deadline));
  Proof proof{};
  const absl::Status proved = socket.read(proof.data(), proof.size(), clock, deadline);
  if (absl::IsUnavailable(proved)) return absl::PermissionDeniedError("the peer has another secret");
  GLN_RETURN_IF_ERROR(proved);
  path.round_trip = std::min(path.round_trip, clock.since_start() - answered);
  if (!same_proof(proof, prove("server", hello.nonce, answer.nonce, secret))) {
    return absl::PermissionDeniedError("the peer does not know the secret");
  }
  GLN_ASSIGN_OR_RETURN(path.answer_time, usual_answer_time(socket, clock, deadline));
  const LoadBudget::Load load(limits.budget, clock);
  GLN_ASSIGN_OR_RETURN(const double received, receive_load(socket, clock, deadline));
  GLN_RETURN_IF_ERROR(send_load(socket, clock, deadline));
  std::array<uint8_t, 8> report{};
  GLN_RETURN_IF_ERROR(socket.read(report.data(), report.size(), clock, deadline));
  uint64_t sent = 0;
  for (size_t i = 0; i < report.size(); ++i) sent |= static_cast<uint64_t>(report[i]) << (8 * i);
  path.bits_per_second = std::min(received, static_cast<double>(sent));
  path.round_trip = std::min({path.round_trip, path.answer_time, socket.least_round_trip()});
  return path;
}

absl::StatusOr<double> measure(const Env& env, const Address& peer, const std::string& secret,
                               const MeasureLimits& limits) {
  GLN_ASSIGN_OR_RETURN(const MeasuredPath path, measure_path(env, peer, secret, limits));
  return path.bits_per_second;
}

absl::StatusOr<std::vector<Address>> resolve(const Address& peers) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(peers.host.c_str(), nullptr, &hints, &list);
  if (error != 0) return absl::UnavailableError(absl::StrCat(peers.host, ": ", gai_strerror(error)));
  std::vector<Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) == 0) {
      addresses.push_back({host.data(), peers.port});
    }
  }
  freeaddrinfo(list);
  return addresses;
}

}  // namespace gleaner::probe
