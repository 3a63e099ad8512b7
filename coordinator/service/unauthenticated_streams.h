// UnauthenticatedStreams limits the number of streams whose members are not authenticated: per host, and in all.
//
// A host is an IPv4 address, or the /64 prefix of an IPv6 address, since one machine may use all addresses with such a
// prefix. Members behind a NAT share one address; a member that is refused tries again. Thread safe.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::coordinator {

// Returns the host of a peer as gRPC names it. "ipv4:10.0.0.7:51234" gives "10.0.0.7", "ipv6:%5B2001:db8::1%5D:51234"
// gives "2001:db8::/64", and an IPv4 address that is mapped into IPv6 gives that IPv4 address. Any other peer gives its
// whole name.
std::string host_of_peer(absl::string_view peer);

class UnauthenticatedStreams : public std::enable_shared_from_this<UnauthenticatedStreams> {
 public:
  // The slot of one stream; its destructor frees it.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept = default;
    Slot& operator=(Slot&& other) noexcept;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { release(); }
    bool is_admitted() const { return streams_ != nullptr; }

   private:
    friend class UnauthenticatedStreams;
    Slot(std::shared_ptr<UnauthenticatedStreams> streams, std::string host)
        : streams_(std::move(streams)), host_(std::move(host)) {}
    void release();

    std::shared_ptr<UnauthenticatedStreams> streams_;
    std::string host_;
  };

  UnauthenticatedStreams(size_t most, size_t most_per_host) : most_(most), most_per_host_(most_per_host) {}

  // Takes a slot for `peer`, as gRPC names it. The stream is not admitted if there are too many others.
  Slot admit(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void remove(const std::string& host) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t most_;
  const size_t most_per_host_;
  absl::Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, size_t> by_host_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::coordinator
