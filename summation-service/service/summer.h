// The I/O around one job's engine: workers' connections in, their frames to the engine, what it wants sent out again.
//
// Serves a CPU summer (gleaner-summer) and the summer colocated in a worker (comm-lib/runtime) alike: it is a transport
// handler for accepted connections, whatever the transport. A worker that connects again takes the place of its old
// connection. A worker whose frame the engine refuses for good is told so, and nothing more of that connection counts.
// Connections that break again and again are warned of. Threads: everything on the one that polls the transport.
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
  // All of these outlive it.
  Summer(const Env& env, const engine::Options& options, const kernels::Kernels* kernels, BufferPool* pool,
         trace::Recorder* recorder);

  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);

  // As the engine's (engine.h).
  bool idle() const { return engine_.idle(); }
  bool idle_without(uint32_t worker) const { return engine_.idle_without(worker); }
  uint32_t epoch() const { return engine_.epoch(); }
  const engine::Counters& counters() const { return engine_.counters(); }
  uint32_t connected_workers() const;
  // Closes all connections: this summer is going to be replaced by another.
  void disconnect(const absl::Status& why);

  void on_connected(transport::Connection& connection) override;
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override;
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(transport::Connection& connection, const absl::Status& status) override;

 private:
  struct Worker {
    transport::Connection* connection = nullptr;  // null: not connected
    bool refused = false;                         // over this connection
    BreakCounter breaks;
  };

  void send_all(bool traced);
  void take(transport::Connection& connection, const wire::Header& header, Buffer payload);
  void record_push(const wire::Header& header, uint32_t worker, int64_t arrived, const engine::Counters& before);

  const Env env_;
  const uint64_t job_;
  BufferPool* const pool_;
  trace::Recorder* const recorder_;
  engine::Engine engine_;
  engine::Actions actions_;
  std::vector<Worker> workers_;
};

}  // namespace gleaner::service
