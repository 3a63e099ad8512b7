// Limits the streams of members that have not proved anything: few per host, and not many altogether.
//
// A host is an IPv4 address, or the /64 prefix of an IPv6 address, since one machine may use all addresses below such a
// prefix. Members behind an address translator share one address; those that are refused try again. Thread safe.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::coordinator {

// The host of a peer as gRPC names it: "ipv4:10.0.0.7:51234" is "10.0.0.7", "ipv6:%5B2001:db8::1%5D:51234" is
// "2001:db8::/64"; an IPv4 address that was mapped into IPv6 is itself. Any other peer is its whole name.
std::string host_of_peer(absl::string_view peer);

class Strangers : public std::enable_shared_from_this<Strangers> {
 public:
  // One stream's place among them, given back with it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept = default;
    Place& operator=(Place&& other) noexcept;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { give_back(); }
    bool taken() const { return strangers_ != nullptr; }

   private:
    friend class Strangers;
    Place(std::shared_ptr<Strangers> strangers, std::string host)
        : strangers_(std::move(strangers)), host_(std::move(host)) {}
    void give_back();

    std::shared_ptr<Strangers> strangers_;
    std::string host_;
  };

  Strangers(size_t most, size_t most_per_host) : most_(most), most_per_host_(most_per_host) {}

  // `peer` as gRPC names it. Not taken(): there are too many.
  Place enter(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void leave(const std::string& host) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t most_;
  const size_t most_per_host_;
  absl::Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, size_t> by_host_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::coordinator
