// Network: the connections between workers and summers, in virtual time.
//
// Processes have numbers. Worker i and its colocated summer are process i; every CPU summer that joins the job gets the
// next number. Parameters named `summer` are the number of a summer's process.
//
// A frame first waits in the sender's transport, which holds the buffer of its payload. Then the frame departs, and its
// payload is copied. Then the frame arrives. Frames within one process are neither copied nor lost. Faults of frames:
// - The weather (Weather in scenario.h) delays, reorders and duplicates frames.
// - When a connection breaks, the frames in flight on it are lost, except for some frames to a summer: they count as
//   received before the break, and arrive ("survivors").
// - A cut connection loses all frames in one direction or in both, and neither end notices it.
// - Slices between workers, and their confirmations, keep their order, and once a connection has lost one of them it
//   loses all later ones, as a byte stream does: their receiver takes a gap for a violation of the protocol.
// - A limited connection breaks, visibly for both ends, once more than a number of bytes were sent to the summer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "common/base/buffer.h"
#include "common/wire/frame.h"
#include "tests/protocol_sim/dice.h"
#include "tests/protocol_sim/event_queue.h"
#include "tests/protocol_sim/report.h"
#include "tests/protocol_sim/scenario.h"

namespace gleaner::sim {

// A worker fills a tensor's memory with this byte when its push_pull is done and the memory belongs to the program
// again.
inline constexpr std::byte kFreeMemory{0xee};

enum class Direction { kToOwner, kToWorker };

class Network {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  using Break = std::function<void(uint32_t worker, uint32_t summer)>;
  using Deliver = std::function<void(Direction, uint32_t worker, uint32_t summer, const wire::Header&, Buffer)>;

  Network(const Scenario& scenario, EventQueue* events, Dice* dice, Report* report, BufferPool* pool, Deliver deliver,
          Break breaks);

  void connect(uint32_t worker, uint32_t summer);
  void disconnect(uint32_t worker, uint32_t summer);
  bool connected(uint32_t worker, uint32_t summer) { return link(worker, summer).up; }
  void set_cut(uint32_t worker, uint32_t summer, Direction direction, bool cut) {
    link(worker, summer).cut[static_cast<size_t>(direction)] = cut;
  }
  bool is_cut(uint32_t worker, uint32_t summer) { return link(worker, summer).cut != std::array<bool, 2>{}; }
  bool is_any_path_bad() const {
    return std::ranges::any_of(links_, [](const auto& link) {
      return link.second.cut != std::array<bool, 2>{} || link.second.limit != kUnlimited;
    });
  }
  void set_limit(uint32_t worker, uint32_t summer, uint64_t bytes) { link(worker, summer).limit = bytes; }
  // Called when a receiver refuses a slice and closes the connection: no later slice of the connection arrives.
  void refuse_slices(uint32_t worker, uint32_t summer) {
    lose_slices(link(worker, summer), link(worker, summer).generation);
  }
  // Returns whether all frames that were sent to the summer over the present connection have arrived.
  bool all_arrived(uint32_t worker, uint32_t summer) {
    const Link& way = link(worker, summer);
    return way.up && way.missing == 0;
  }

  void send(Direction direction, uint32_t worker, uint32_t summer, wire::Header header, Buffer payload);

  uint64_t in_flight() const { return in_flight_; }

 private:
  struct Link {
    bool up = false;
    std::array<bool, 2> cut{};    // by direction
    uint64_t limit = kUnlimited;  // most bytes to the summer
    uint64_t bytes = 0;           // bytes sent to the summer over this connection
    uint64_t missing = 0;         // frames sent to the summer over this connection that have not arrived
    uint64_t generation = 0;      // grows with every connect and disconnect
    uint64_t lost_slices = 0;     // the latest generation that has lost a slice
    std::array<Nanoseconds, 2> last_departure{}, last_arrival{};
  };
  struct Frame {
    Direction direction;
    uint32_t worker, summer;
    uint64_t generation;
    wire::Header header;
    Buffer payload;
    bool copy = false;  // a duplicate that the weather made
  };

  Link& link(uint32_t worker, uint32_t summer) { return links_[{worker, summer}]; }
  // A slice between workers, or a confirmation of slices.
  static bool is_slice(const wire::Header& header) { return wire::is_of_schedule(header.type); }
  Link& link(const Frame& frame) { return link(frame.worker, frame.summer); }
  void depart(Frame frame);
  void check_still_held(const Frame& frame);
  void arrive(const Frame& frame);
  void lose(const Frame& frame);
  static void lose_slices(Link& link, uint64_t generation) {
    link.lost_slices = std::max(link.lost_slices, generation);
  }
  Nanoseconds delay(Nanoseconds& last, bool keeps_order);

  const Weather weather_;
  EventQueue* const events_;
  Dice* const dice_;
  Report* const report_;
  BufferPool* const pool_;
  const Deliver deliver_;
  const Break break_;
  std::map<std::pair<uint32_t, uint32_t>, Link> links_;  // by worker, summer
  uint64_t in_flight_ = 0;
};

}  // namespace gleaner::sim
