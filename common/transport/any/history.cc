#include "common/transport/any/history.h"

namespace gleaner::transport::any {
namespace {

constexpr int kMostFailures = 3;
constexpr absl::Duration kDemotedFor = absl::Minutes(1);
constexpr absl::Duration kLongEnough = absl::Seconds(10);
// Bounds the memory: summers that come and go have a new address each time.
constexpr size_t kMostPeers = 4096;

}  // namespace

History::Past& History::past(const std::string& peer) {
  // Forgetting a demoted transport costs one more failed attempt and a line in the log.
  if (peers_.size() >= kMostPeers && !peers_.contains(peer)) peers_.clear();
  return peers_[peer];
}

const History::Path* History::path(const std::string& peer, Kind kind) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : &found->second.paths[static_cast<size_t>(kind)];
}

void History::on_failed(const std::string& peer, Kind kind, const absl::Status& why, absl::Duration now) {
  Path& path = past(peer).paths[static_cast<size_t>(kind)];
  path.why = why;
  // The count is not reset when the minute ends, so a single further failure demotes the transport again.
  if (++path.failures >= kMostFailures) path.demoted_until = now + kDemotedFor;
}

void History::on_broken(const std::string& peer, Kind kind, const absl::Status& why, absl::Duration was_up,
                        absl::Duration now) {
  if (was_up < kLongEnough) return on_failed(peer, kind, why, now);
  past(peer).paths[static_cast<size_t>(kind)] = {.failures = 0, .why = why};
}

bool History::is_demoted(const std::string& peer, Kind kind, absl::Duration now) const {
  const Path* const found = path(peer, kind);
  return found != nullptr && now < found->demoted_until;
}

absl::Status History::last_failure(const std::string& peer, Kind kind) const {
  const Path* const found = path(peer, kind);
  return found == nullptr ? absl::OkStatus() : found->why;
}

std::optional<Kind> History::used(const std::string& peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? std::nullopt : found->second.used;
}

void History::use(const std::string& peer, Kind kind) { past(peer).used = kind; }

}  // namespace gleaner::transport::any
