// ChangingJob: the exchanges of a job's workers and the engines of its members on a simulated network, while a
// coordinator proposes plans that change strategies and move partitions. Everything follows from one seed: when workers
// begin push_pulls, how long frames and the coordinator's messages take, when connections break, and whether a plan is
// committed or withdrawn. Each result is compared, bit for bit, with the sum by the strategy that the committed plans
// name for that push_pull.
//
// A connection keeps the order of its frames in each direction. A connection that breaks loses the frames on the way.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm-lib/exchange/exchanges.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "summation-service/engine/engine.h"

namespace gleaner::testing {

class ChangingJob {
 public:
  struct Counts {
    uint64_t committed = 0;  // plans
    uint64_t withdrawn = 0;
    uint64_t refused = 0;
    uint64_t held = 0;       // times that a push_pull was held
    uint64_t by_owners = 0;  // results of workers
    uint64_t by_schedules = 0;
  };

  explicit ChangingJob(uint64_t seed);

  // Runs the job until all push_pulls have ended. Returns a description of the first fault, or an empty string.
  std::string run();
  const Counts& counts() const { return counts_; }

 private:
  using Schedule = std::optional<uint32_t>;
  struct Push {
    uint32_t tensor = 0;
    uint64_t number = 0;
    bool operator<(const Push& other) const { return std::tie(tensor, number) < std::tie(other.tensor, other.number); }
  };
  struct Piece {
    Push push;
    size_t first = 0;  // element of the tensor
    std::vector<float> memory;
  };
  // A connection that a worker has dialed.
  struct Connection {
    bool is_open = true;
    absl::Duration last_arrival[2];  // by direction: to the member, and back
  };
  struct Worker {
    BufferPool pool;
    exchange::Exchanges exchanges;
    std::vector<uint64_t> begun;                           // by tensor
    std::vector<uint32_t> in_flight;                       // pieces, by tensor
    std::map<uint64_t, Piece> pieces;                      // by id
    std::vector<std::shared_ptr<Connection>> connections;  // by member; null: none
  };
  struct Summer {
    BufferPool pool;
    std::unique_ptr<engine::Engine> engine;
    engine::Actions actions;
  };
  struct Event {
    absl::Duration at;
    uint64_t number = 0;
    std::function<void()> happen;
    bool operator<(const Event& other) const { return std::tie(other.at, other.number) < std::tie(at, number); }
  };

  uint64_t dice(uint64_t sides) { return random_() % sides; }
  absl::Duration some_time(uint64_t most_us) { return absl::Microseconds(static_cast<int64_t>(1 + dice(most_us))); }
  void after(absl::Duration time, std::function<void()> happen);
  void fail(const std::string& what);
  void expect(const absl::Status& status) {
    if (!status.ok()) fail(status.ToString());
  }

  // The coordinator. tell() delivers messages to one member in their order.
  void tell(uint32_t member, std::function<void()> message);
  std::shared_ptr<const plan::Plan> next_plan();
  void propose();
  absl::Status prepare(uint32_t member, const std::shared_ptr<const plan::Plan>& plan);
  void on_answer(const std::shared_ptr<const plan::Plan>& plan, const absl::Status& answer);
  void commit(uint32_t member, const std::shared_ptr<const plan::Plan>& plan);

  void tick(uint32_t worker);
  void start_something(uint32_t worker);
  void start_pieces(uint32_t worker, uint32_t tensor);
  void carry_out(uint32_t worker);
  void carry_out_summer(uint32_t member);
  void transmit(const std::shared_ptr<Connection>& connection, int direction, std::function<void()> arrive);
  void arrive(uint32_t worker, uint32_t member, const wire::Header& header, const std::vector<std::byte>& bytes);
  void check(uint32_t worker, const exchange::Done& done);
  void connect(uint32_t worker, uint32_t member);
  void break_connection(uint32_t worker, uint32_t member);
  bool has_ended() const;
  bool is_over() const;

  std::vector<float> contribution(uint32_t worker, const Push& push) const;
  Schedule strategy_of(const Push& push) const;
  const std::vector<std::vector<float>>& expected(const Push& push);  // by worker

  const uint64_t seed_;
  std::mt19937_64 random_;
  kernels::Kernels kernels_;
  absl::Duration now_ = absl::Seconds(1);
  uint64_t events_ = 0;
  uint64_t piece_ids_ = 0;
  uint64_t steps_;
  std::string fault_;
  Counts counts_;
  std::deque<Worker> workers_;
  std::deque<Summer> summers_;              // by member
  std::shared_ptr<const plan::Plan> plan_;  // the latest that the coordinator has committed
  uint32_t last_epoch_ = 1;
  uint32_t answers_ = 0;  // to the last proposal
  bool is_refused_ = false;
  std::vector<absl::Duration> last_told_;                            // by member
  std::vector<std::vector<std::pair<uint64_t, Schedule>>> changes_;  // by tensor: those of committed plans
  std::map<Push, std::vector<std::vector<float>>> expected_;
  std::priority_queue<Event> queue_;  // holds buffers of workers_ and summers_
};

}  // namespace gleaner::testing
