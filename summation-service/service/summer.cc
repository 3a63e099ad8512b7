#include "summation-service/service/summer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::service {

Summer::Summer(const Env& env, const engine::Options& options, const kernels::Kernels* kernels, BufferPool* pool,
               trace::Recorder* recorder)
    : env_(env), job_(options.job), pool_(pool), recorder_(recorder), engine_(options, kernels, pool) {}

absl::Status Summer::prepare(std::shared_ptr<const plan::Plan> plan) {
  // After a restart, the coordinator may prepare a plan again that a frame has already committed.
  if (plan->epoch == engine_.epoch()) return absl::OkStatus();
  if (workers_.size() < plan->workers) workers_.resize(plan->workers);
  return engine_.prepare(std::move(plan));
}

absl::Status Summer::commit(uint32_t epoch) {
  absl::Status status = engine_.commit(epoch, actions_);
  send_all(false);
  return status;
}

uint32_t Summer::connected_workers() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(workers_, [](const Worker& worker) { return worker.connection != nullptr; }));
}

void Summer::disconnect(const absl::Status& why) {
  for (Worker& worker : workers_) {
    if (auto* const connection = std::exchange(worker.connection, nullptr); connection != nullptr) {
      connection->close(why);
    }
  }
}

void Summer::on_connected(transport::Connection& connection) {
  const transport::Peer& peer = connection.peer();
  if (peer.job != job_ || peer.member >= plan::kMaxMembers) {
    connection.close(absl::InvalidArgumentError(absl::StrCat("member ", peer.member, " is not a worker of this job")));
    return;
  }
  // A worker may learn of the plan and connect before this summer learns of it.
  if (workers_.size() <= peer.member) workers_.resize(peer.member + 1);
  Worker& worker = workers_[peer.member];
  transport::Connection* const old = std::exchange(worker.connection, &connection);
  worker.refused = false;
  if (old != nullptr) old->close(absl::AbortedError("the worker connected again"));
  env_.log->debug("worker connected", "worker", peer.member, "address", peer.address);
  engine_.on_connected(peer.member, actions_);
  send_all(false);
}

absl::StatusOr<Buffer> Summer::on_header(transport::Connection&, const wire::Header& header) {
  return pool_->take(header.payload_bytes);
}

void Summer::on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  const uint32_t worker = connection.peer().member;
  const bool refused = workers_[worker].connection == &connection && workers_[worker].refused;
  if (!refused) take(connection, header, std::move(payload));
}

void Summer::take(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  const uint32_t worker = connection.peer().member;
  const bool traced = recorder_->is_on() && header.type == wire::FrameType::kPush;
  const int64_t arrived = traced ? recorder_->now() : 0;
  const absl::Status status = engine_.on_frame(worker, header, std::move(payload), actions_);
  if (!status.ok()) {
    env_.log->warning("a worker's message was refused", "worker", worker, "reason", status.message());
    if (absl::IsInvalidArgument(status) && workers_[worker].connection == &connection) {
      workers_[worker].refused = true;
    } else {
      connection.close(status);
    }
  }
  if (traced && actions_.has_contributed) record_push(header, worker, arrived);
  send_all(traced);
}

void Summer::send_all(bool traced) {
  for (engine::Send& send : actions_.sends) {
    // A frame for a worker without a connection is dropped: the worker pushes again when it has reconnected, and then
    // gets the answer.
    if (send.worker < workers_.size() && workers_[send.worker].connection != nullptr) {
      if (traced && send.header.type == wire::FrameType::kResult) {
        recorder_->record(trace::Kind::kAnswered, send.header.step, send.header.tensor, send.header.partition,
                          send.worker, send.header.payload_bytes);
      }
      workers_[send.worker].connection->send(send.header, std::move(send.payload));
    }
  }
  actions_.clear();
}

// Records the events that follow from a contribution that arrived at `arrived`. The engine knows neither clock nor
// traces.
void Summer::record_push(const wire::Header& header, uint32_t worker, int64_t arrived) {
  trace::Event event{arrived,
                     header.step,
                     header.tensor,
                     header.partition,
                     header.payload_bytes,
                     static_cast<uint16_t>(worker),
                     trace::Kind::kContributed};
  recorder_->record(event);
  if (!actions_.has_summed) return;
  event.peer = 0;
  event.kind = trace::Kind::kSumBegun;
  recorder_->record(event);
  event.nanoseconds = recorder_->now();
  event.kind = trace::Kind::kSumEnded;
  recorder_->record(event);
}

void Summer::on_closed(transport::Connection& connection, const absl::Status& status) {
  const uint32_t member = connection.peer().member;
  const std::string& address = connection.peer().address;
  env_.log->debug("connection closed", "worker", member, "address", address, "reason", status.message());
  if (member >= workers_.size()) return;
  Worker& worker = workers_[member];
  const bool is_current = worker.connection == &connection;
  if (is_current) worker.connection = nullptr;
  const uint32_t breaks = is_current ? worker.breaks.on_break(env_.clock->since_start()) : 0;
  if (breaks == 0) return;
  env_.log->warning("a worker's connections break again and again", "worker", member, "address", address, "breaks",
                    breaks, "within", absl::FormatDuration(BreakCounter::kWindow), "last", status.message());
}

}  // namespace gleaner::service
