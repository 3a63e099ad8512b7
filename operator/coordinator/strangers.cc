#include "operator/coordinator/strangers.h"

#include <utility>

namespace gleaner::coordinator {

Strangers::Place& Strangers::Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  strangers_ = std::move(other.strangers_);
  host_ = std::move(other.host_);
  return *this;
}

void Strangers::Place::give_back() {
  if (const auto strangers = std::exchange(strangers_, nullptr)) strangers->leave(host_);
}

Strangers::Place Strangers::enter(absl::string_view peer) {
  std::string host(peer.substr(0, peer.rfind(':')));
  absl::MutexLock lock(&mutex_);
  if (count_ == most_) return {};
  size_t& here = by_host_[host];
  if (here == most_per_host_) return {};
  ++here;
  ++count_;
  return {shared_from_this(), std::move(host)};
}

void Strangers::leave(const std::string& host) {
  absl::MutexLock lock(&mutex_);
  --count_;
  const auto found = by_host_.find(host);
  if (--found->second == 0) by_host_.erase(found);
}

}  // namespace gleaner::coordinator
