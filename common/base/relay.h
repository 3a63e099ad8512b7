// Relay passes TCP connections on to a port of 127.0.0.1. With it a server whose library knows only IPv4 serves IPv6:
// the server listens on 127.0.0.1, and the relay on the address that the user chose.
//
// One thread carries the bytes of at most 64 connections both ways; further peers wait until one of them ends. The end
// of one direction is passed on, so that a peer which ends its side still receives the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/descriptor.h"
#include "common/base/waker.h"

namespace gleaner {

class Relay {
 public:
  // Serves the connections to `listener`, which comes from listen_on(), until the relay is destroyed. ResourceExhausted
  // if no file descriptor is left.
  static absl::StatusOr<std::unique_ptr<Relay>> start(Descriptor listener, uint16_t port);
  // Accepts no more connections, and passes on what the server has sent, for at most a second. Destroy the server
  // first, so that it ends its side of every connection.
  ~Relay();

 private:
  Relay(Descriptor listener, uint16_t port, std::unique_ptr<Waker> stop);
  void run() const;

  const Descriptor listener_;
  const uint16_t port_;
  const std::unique_ptr<Waker> stop_;  // readable: the thread ends
  std::thread thread_;                 // declared last, since it uses all members above
};

}  // namespace gleaner
