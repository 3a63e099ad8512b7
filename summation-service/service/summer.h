// Summer does the I/O around the engine of one job. It passes frames from workers' connections to the engine, and sends
// the frames that the engine returns.
//
// It is a transport::Handler for accepted connections. Both a CPU summer (gleaner-summer) and the summer colocated in a
// worker (comm-lib/network) use it. When a worker connects again, the new connection replaces the old one. When the
// engine refuses a worker's frame permanently, Summer sends the worker a kRefuse and ignores further frames of that
// connection. It logs a warning about a connection that breaks repeatedly. Threads: all functions run on the thread
// that polls the transport.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/break_counter.h"
#include "common/base/env.h"
#include "common/trace/recorder.h"
#include "common/transport/transport.h"
#include "summation-service/engine/engine.h"

namespace gleaner::service {

class Summer : public transport::Handler {
 public:
  // All arguments must outlive the summer.
  Summer(const Env& env, const engine::Options& options, const kernels::Kernels* kernels, BufferPool* pool,
         trace::Recorder* recorder);

  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);

  // Return the values of the engine's functions of the same names.
  bool idle() const { return engine_.idle(); }
  bool idle_without(uint32_t worker) const { return engine_.idle_without(worker); }
  uint32_t epoch() const { return engine_.epoch(); }
  engine::Counters counters() const { return engine_.counters(); }
  uint32_t connected_workers() const;
  // Closes all connections. Called before another Summer replaces this one.
  void disconnect(const absl::Status& why);

  void on_connected(transport::Connection& connection) override;
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override;
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(transport::Connection& connection, const absl::Status& status) override;

 private:
  struct Worker {
    transport::Connection* connection = nullptr;  // null: not connected
    bool refused = false;                         // the engine has permanently refused a frame of this connection
    BreakCounter breaks;
  };

  void send_all(bool traced);
  void take(transport::Connection& connection, const wire::Header& header, Buffer payload);
  void record_push(const wire::Header& header, uint32_t worker, int64_t arrived);

  const Env env_;
  const uint64_t job_;
  BufferPool* const pool_;
  trace::Recorder* const recorder_;
  engine::Engine engine_;
  engine::Actions actions_;
  std::vector<Worker> workers_;
};

}  // namespace gleaner::service
