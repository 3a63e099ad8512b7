// Stripe chooses the path, which is a queue pair, by which a connection's next payload comes: the one by which it would
// arrive first, given the bytes in flight on each path. So paths get payloads in proportion to their bandwidth. At
// first this is the bandwidth that the ports state; once payloads have arrived by the path back to back, it is the
// measured bandwidth. Pure.
//
// For example, with paths of 100 and 200 Gbit/s the second one gets two of three payloads of equal size.
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
  // Allows payloads on this path, which states this bandwidth. Path 0 is the connection's own link; it carries payloads
  // while no other path is open.
  void open(size_t path, uint64_t bits_per_second) {
    if (paths_[path].stated_rate == 0 && bits_per_second > 0) ++lanes_;
    paths_[path].stated_rate = static_cast<double>(bits_per_second);
    end_ = std::max(end_, path + 1);
  }

  // Returns the path for a payload of this size.
  size_t choose(uint64_t bytes) const {
    const double scale = measured_to_stated();
    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i < end_; ++i) {
      const Path& path = paths_[i];
      if (path.stated_rate == 0) continue;
      const double rate = path.measured_rate > 0 ? path.measured_rate : path.stated_rate * scale;
      const double done = static_cast<double>(path.bytes + bytes) / rate;
      if (least > 0 && done >= least) continue;
      best = i;
      least = done;
    }
    return best;
  }

  // Record that a payload has been granted, or has arrived. `now` never decreases.
  void started(size_t path, uint64_t bytes) { paths_[path].bytes += bytes; }
  void done(size_t path, uint64_t bytes, absl::Duration now) {
    paths_[path].bytes -= bytes;
    watch(paths_[path], bytes, now);
    for (size_t i = 0; i < end_; ++i) {
      if (now - paths_[i].measured_at > kForgetAfter) paths_[i].measured_rate = 0;
    }
  }
  size_t paths() const { return std::max<size_t>(1, lanes_); }

 private:
  // A measurement over less than this shows how fast the receiver reads completions rather than the path's bandwidth.
  static constexpr uint64_t kEnoughBytes = 2 << 20;
  static constexpr int kEnoughPayloads = 4;
  // A path that was slow gets too few payloads to show that it has become faster, so its measurement is dropped.
  static constexpr absl::Duration kForgetAfter = absl::Seconds(5);

  struct Path {
    double stated_rate = 0;    // bits per second, as the ports state it; 0: the path carries no payloads
    double measured_rate = 0;  // bits per second; 0: not known
    absl::Duration measured_at;
    uint64_t bytes = 0;     // in flight
    bool was_busy = false;  // bytes were in flight at `last`
    absl::Duration last;    // when the last payload arrived
    // Payloads that arrived back to back since `measured_rate` was last computed.
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
    path.measured_rate = path.measured_rate > 0 ? (path.measured_rate + rate) / 2 : rate;
    path.measured_at = now;
    path.measured_bytes = 0;
    path.measured_payloads = 0;
    path.measured_time = absl::ZeroDuration();
  }

  // Returns the ratio of measured to stated bandwidth over all measured paths, or 1 if there are none. choose()
  // multiplies the stated bandwidth of other paths by it.
  double measured_to_stated() const {
    double measured = 0, stated = 0;
    for (size_t i = 0; i < end_; ++i) {
      if (paths_[i].measured_rate == 0) continue;
      measured += paths_[i].measured_rate;
      stated += paths_[i].stated_rate;
    }
    return stated > 0 ? measured / stated : 1;
  }

  std::array<Path, kMostLanes + 1> paths_;
  size_t end_ = 1;
  size_t lanes_ = 0;
};

}  // namespace gleaner::transport::rdma
