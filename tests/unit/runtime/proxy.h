// A TCP proxy on loopback that can be told to spoil the connections that it carries, in a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>
#include <vector>

#include "common/base/address.h"

namespace gleaner::runtime {

class Proxy {
 public:
  enum class Way {
    kPass,
    kReset,  // a connection ends with its first 64 KiB towards the target, which let the handshake pass
    kFlip,   // a bit of each larger piece towards the target flips, once the handshake has passed
  };

  explicit Proxy(Way way = Way::kPass);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const Address& address() const { return address_; }
  void forward_to(const Address& target) { port_ = target.port; }  // on 127.0.0.1
  void set(Way way) { way_ = way; }
  uint32_t connections() const { return connections_; }  // so far

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    uint64_t forwarded = 0;  // from client to server
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

}  // namespace gleaner::runtime
