// What came of reaching each peer by each transport. Pure.
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
  // An attempt failed where another transport worked.
  void on_failed(const std::string& peer, Kind kind, const absl::Status& why, absl::Duration now);
  // A connection broke that had been up for so long: that, too, is a failure where it was not long.
  void on_broken(const std::string& peer, Kind kind, const absl::Status& why, absl::Duration was_up,
                 absl::Duration now);
  // Whether it has failed so often of late that others come first for now.
  bool is_shunned(const std::string& peer, Kind kind, absl::Duration now) const;
  absl::Status last_failure(const std::string& peer, Kind kind) const;  // OK: none

  // By what the peer was reached last; none: never.
  std::optional<Kind> used(const std::string& peer) const;
  void use(const std::string& peer, Kind kind);

 private:
  struct Path {
    int failures = 0;  // in a row
    absl::Duration shunned_until = -absl::InfiniteDuration();
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
