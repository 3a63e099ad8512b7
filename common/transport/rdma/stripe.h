// By which of its queue pairs a connection's next payload shall come: the one where it would be there first, reckoning
// with what is on the way already. So payloads are shared out by bandwidth: by what each path is said to have at first,
// and by what it is seen to have, as soon as payloads have come by it one right after the other. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class Stripe {
 public:
  // From now on payloads may come by this lane. 0 is the connection's own link, by which they come while there is none.
  void open(size_t path, uint64_t bits_per_second) {
    if (paths_[path].said == 0 && bits_per_second > 0) ++lanes_;
    paths_[path].said = static_cast<double>(bits_per_second);
    end_ = std::max(end_, path + 1);
  }

  size_t choose(uint64_t bytes) const {
    const double known = known_share();
    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i < end_; ++i) {
      const Path& path = paths_[i];
      if (path.said == 0) continue;
      const double rate = path.seen > 0 ? path.seen : path.said * known;
      const double done = static_cast<double>(path.bytes + bytes) / rate;
      if (least > 0 && done >= least) continue;
      best = i;
      least = done;
    }
    return best;
  }

  // `now`: never less than before.
  void started(size_t path, uint64_t bytes) { paths_[path].bytes += bytes; }
  void done(size_t path, uint64_t bytes, absl::Duration now) {
    paths_[path].bytes -= bytes;
    watch(paths_[path], bytes, now);
    for (size_t i = 0; i < end_; ++i) {
      if (now - paths_[i].seen_at > kForgetAfter) paths_[i].seen = 0;
    }
  }
  size_t paths() const { return std::max<size_t>(1, lanes_); }

 private:
  // What is measured over less is more of the receiver's haste than of the path.
  static constexpr uint64_t kEnoughBytes = 2 << 20;
  static constexpr int kEnoughPayloads = 4;
  // A path that was slow may not be any more, and gets too little to show it.
  static constexpr absl::Duration kForgetAfter = absl::Seconds(5);

  struct Path {
    double said = 0;  // bits per second; 0: no payloads come by it
    double seen = 0;  // bits per second; 0: not known
    absl::Duration seen_at;
    uint64_t bytes = 0;     // on the way
    bool was_busy = false;  // since `last`, when a payload came
    absl::Duration last;
    // Those that came right after another, since `seen` was made.
    uint64_t measured_bytes = 0;
    int measured_payloads = 0;
    absl::Duration measured_time;
  };

  static void watch(Path& path, uint64_t bytes, absl::Duration now) {
    if (path.was_busy) {
      path.measured_bytes += bytes;
      ++path.measured_payloads;
      path.measured_time += now - path.last;
    }
    path.was_busy = path.bytes > 0;
    path.last = now;
    if (path.measured_bytes < kEnoughBytes || path.measured_payloads < kEnoughPayloads) return;
    if (path.measured_time <= absl::ZeroDuration()) return;
    const double rate = 8 * static_cast<double>(path.measured_bytes) / absl::ToDoubleSeconds(path.measured_time);
    path.seen = path.seen > 0 ? (path.seen + rate) / 2 : rate;
    path.seen_at = now;
    path.measured_bytes = 0;
    path.measured_payloads = 0;
    path.measured_time = absl::ZeroDuration();
  }

  // How much of what they are said to have the paths have that were seen.
  double known_share() const {
    double seen = 0, said = 0;
    for (size_t i = 0; i < end_; ++i) {
      if (paths_[i].seen == 0) continue;
      seen += paths_[i].seen;
      said += paths_[i].said;
    }
    return said > 0 ? seen / said : 1;
  }

  std::array<Path, kMostLanes + 1> paths_;
  size_t end_ = 1;
  size_t lanes_ = 0;
};

}  // namespace gleaner::transport::rdma
