// SimulatedJob: the executors of a job's workers, connected by a simulated network. Everything follows from one seed:
// when workers begin which push_pulls, how long frames take, and when connections break. Each result is compared with
// collective::execute_all_reduce(), bit for bit.
//
// The network keeps the order of the frames of one connection, and no other order. When a connection ends, the frames
// that have left arrive up to a random one, the later ones never. They may arrive after frames of the next connection.
// A frame that the sender's memory holds when it arrives must be as it was when it was sent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm-lib/executor/executor.h"
#include "tests/unit/executor/scheduled_plans.h"

namespace gleaner::testing {

struct JobSpec {
  ScheduledPlan plan;
  uint64_t steps = 2;         // push_pulls of each tensor
  uint64_t window_bytes = 0;  // 0: the default
  // True: connections break, and new ones follow.
  bool breaks = false;
};

class SimulatedJob {
 public:
  SimulatedJob(JobSpec spec, uint64_t seed);

  // Runs the job until all push_pulls have ended and all workers are idle. Returns a description of the first fault,
  // or an empty string.
  std::string run();
  uint64_t repeats() const;  // slices that were sent again

 private:
  struct Push {
    uint32_t tensor = 0;
    uint64_t step = 0;
    bool operator<(const Push& other) const { return std::tie(tensor, step) < std::tie(other.tensor, other.step); }
  };
  struct Piece {
    Push push;
    uint32_t first = 0;
    uint32_t count = 0;
    uint64_t offset = 0;  // of the output in the tensor
    std::vector<std::byte> input;
    std::vector<std::byte> output;
  };
  // One connection in one direction.
  struct Connection {
    bool is_open = true;
    uint64_t sent = 0;
    uint64_t lost_from = UINT64_MAX;  // number of the first frame that does not arrive
    absl::Duration last_arrival;
  };
  struct Worker {
    BufferPool pool;
    std::unique_ptr<executor::Executor> executor;
    exchange::Actions actions;
    std::vector<uint64_t> begun;                           // by tensor
    std::vector<uint32_t> pieces_in_flight;                // by tensor
    std::map<uint64_t, Piece> pieces;                      // by id
    std::vector<std::shared_ptr<Connection>> connections;  // by peer; null: none
  };
  struct Event {
    absl::Duration at;
    uint64_t number = 0;
    std::function<void()> happen;
    bool operator<(const Event& other) const { return std::tie(other.at, other.number) < std::tie(at, number); }
  };

  uint64_t dice(uint64_t sides) { return random_() % sides; }
  void after(absl::Duration time, std::function<void()> happen);
  absl::Duration random_time(int64_t most_us) { return absl::Microseconds(1 + dice(static_cast<uint64_t>(most_us))); }
  void fail(const std::string& what);

  void start_something(uint32_t worker);
  void start_pieces(uint32_t worker, uint32_t tensor);
  void carry_out(uint32_t worker);
  void transmit(uint32_t worker, exchange::Send send);
  void arrive(uint32_t to, const exchange::Send& send, const std::vector<std::byte>& as_sent, bool is_current);
  void check(uint32_t worker, const exchange::Done& done);
  void connect(uint32_t worker, uint32_t peer);
  void break_connection(uint32_t worker, uint32_t peer);
  void tick(uint32_t worker);
  bool is_over() const;
  std::string describe_rest() const;

  std::vector<std::byte> contribution(uint32_t worker, const Push& push) const;
  // Returns the results of a push_pull by rank.
  const std::vector<std::vector<std::byte>>& expected(const Push& push);
  uint32_t rank_of(const Push& push, uint32_t worker) const;

  const JobSpec spec_;
  const uint64_t seed_;
  std::mt19937_64 random_;
  kernels::Kernels kernels_;
  std::shared_ptr<const plan::Plan> plan_;
  absl::Duration now_ = absl::Seconds(1);
  uint64_t events_ = 0;
  uint64_t pieces_ = 0;
  std::string fault_;
  std::deque<Worker> workers_;
  std::priority_queue<Event> queue_;  // holds buffers of workers_
  std::map<Push, std::vector<std::vector<std::byte>>> expected_;
  std::map<Push, ReduceOp> ops_;
};

}  // namespace gleaner::testing
