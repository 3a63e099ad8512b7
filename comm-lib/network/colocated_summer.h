// ColocatedSummer is the summer in a worker's process. Other workers connect to it by a transport of its owner, which
// passes on the callbacks of accepted connections. This worker's own session connects in process, over hub().
//
//   other workers ── transport of the caller ──▶ on_frame() ──▶ service::Summer
//   own session ──── hub() ──── poll() ────────────┘
//
// The summer has a place in the job, its member index. It is open from open() to close(). Connections are refused while
// it is not open.
// Belongs to the thread of the owner's transport. The owner destroys all transports that hold connections to the
// summer, then this object, then the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/base/env.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "common/trace/recorder.h"
#include "common/transport/inproc/transport.h"
#include "common/transport/transport.h"
#include "summation-service/service/summer.h"

namespace gleaner::network {

class ColocatedSummer : public transport::Handler {
 public:
  struct Options {
    uint64_t job = 0;           // wire::job_number() of the job's name
    uint64_t memory_bytes = 0;  // limit, as in engine::Options
  };

  // `kernels`, `pool` and `recorder` must outlive this object.
  ColocatedSummer(const Env& env, const Options& options, const kernels::Kernels* kernels, BufferPool* pool,
                  trace::Recorder* recorder);

  // The own session connects to `address`, by an inproc::Transport over hub().
  transport::inproc::Hub* hub() { return &hub_; }
  absl::Status listen(const Address& address) { return transport_.listen(address).status(); }

  // Opens a summer at this place in the job. It replaces a summer at an earlier place, whose connections are closed.
  void open(uint32_t member);
  // Drops the summer and its contributions, since the session has failed with `why`. Further connections and frames are
  // refused with this reason, which the other workers' errors then name.
  void close(const absl::Status& why);
  bool is_open() const { return summer_ != nullptr; }

  // Call the functions of Summer. FailedPrecondition: the summer is not open.
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);

  // Call the functions of Summer. True if the summer is not open.
  bool idle() const { return summer_ == nullptr || summer_->idle(); }
  bool idle_without(uint32_t worker) const { return summer_ == nullptr || summer_->idle_without(worker); }
  const service::Summer* summer() const { return summer_.get(); }  // null: not open

  // Handles the frames that the own session has sent. pending(): there are such frames.
  void poll() { transport_.poll(absl::ZeroDuration()); }
  bool pending() const { return transport_.pending(); }

  // Callbacks of accepted connections.
  void on_connected(transport::Connection& connection) override;
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override;
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(transport::Connection& connection, const absl::Status& status) override;

 private:
  const Env env_;
  const Options options_;
  const kernels::Kernels* const kernels_;
  BufferPool* const pool_;
  trace::Recorder* const recorder_;
  std::unique_ptr<service::Summer> summer_;
  std::string refusal_ = "this worker's session is not open";
  transport::inproc::Hub hub_;
  transport::inproc::Transport transport_;
};

}  // namespace gleaner::network
