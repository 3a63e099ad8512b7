// History remembers, for each peer, which transport was used last and how often each has failed. Pure.
//
// A transport fails with a peer if it could not connect while another transport could, or if its connection broke
// within ten seconds. After three failures in a row the transport is *demoted* with that peer for a minute. Each
// further failure demotes it for another minute. Only a connection that broke after ten seconds or more resets the
// count.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/transport/endpoint.h"

namespace gleaner::transport::any {

class History {
 public:
  // Records that an attempt to connect failed while another transport could connect.
  void on_failed(const std::string& peer, Kind kind, const absl::Status& why, absl::Duration now);
  // Records that a connection broke after it had been up for `was_up`. This counts as a failure if `was_up` is less
  // than ten seconds.
  void on_broken(const std::string& peer, Kind kind, const absl::Status& why, absl::Duration was_up,
                 absl::Duration now);
  // Returns whether other transports should be tried first with this peer.
  bool is_demoted(const std::string& peer, Kind kind, absl::Duration now) const;
  absl::Status last_failure(const std::string& peer, Kind kind) const;  // OK if there was none

  // Returns the transport that last reached the peer; nullopt if none ever has.
  std::optional<Kind> used(const std::string& peer) const;
  void use(const std::string& peer, Kind kind);

 private:
  struct Path {
    int failures = 0;  // in a row
    absl::Duration demoted_until = -absl::InfiniteDuration();
    absl::Status why;
  };
  struct Past {
    std::optional<Kind> used;
    std::array<Path, kKinds> paths;
  };
  Past& past(const std::string& peer);
  const Path* path(const std::string& peer, Kind kind) const;

  absl::flat_hash_map<std::string, Past> peers_;
};

}  // namespace gleaner::transport::any
