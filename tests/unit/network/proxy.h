// Proxy: a TCP proxy on loopback, with its own thread, that can damage the connections that it forwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>
#include <vector>

#include "common/base/address.h"

namespace gleaner::network {

class Proxy {
 public:
  enum class Way {
    kPass,
    kReset,  // resets a connection after 64 KiB towards the target, which is enough for the handshake
    kFlip,   // flips a bit in each larger piece towards the target, after the handshake
  };

  explicit Proxy(Way way = Way::kPass);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const Address& address() const { return address_; }
  void forward_to(const Address& target) { port_ = target.port; }  // on 127.0.0.1
  void set(Way way) { way_ = way; }
  uint32_t connections() const { return connections_; }  // number of connections accepted so far

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    uint64_t forwarded = 0;  // bytes from client to server
    bool over = false;
  };
  void run();
  void accept_one();
  void forward(Pair& pair, bool to_server);

  Address address_;
  std::atomic<Way> way_;
  std::atomic<uint16_t> port_{0};
  std::atomic<uint32_t> connections_{0};
  std::atomic<bool> stopping_{false};
  int listener_ = -1;
  std::list<Pair> pairs_;
  std::vector<std::byte> bytes_;
  std::thread thread_;
};

}  // namespace gleaner::network
