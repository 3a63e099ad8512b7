// The state of a Session. Private to this folder: session.cc has requests, plans and pushes; answers.cc has frames from
// owners and the answers to them; accumulated.cc has both for tensors that accumulate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/session/ack_batches.h"
#include "comm-lib/session/retention.h"
#include "comm-lib/session/send_queue.h"
#include "comm-lib/session/session.h"

namespace gleaner::session {

inline constexpr uint32_t kNoRequest = UINT32_MAX;

struct PartitionState {
  uint64_t step = 0;              // steps whose result is here
  uint32_t request = kNoRequest;  // in flight, that it is part of: index in requests_
  bool missing = false;           // the result of its request in flight
  bool pushed = false;            // in this step, to this owner or an earlier one, and its result is not here yet
  bool moved = false;             // in this step: a frame to an earlier owner may still refer to the input
};

struct RequestState {
  bool active = false;
  uint32_t begin = 0;  // of its partitions in the plan
  uint32_t end = 0;
  uint32_t missing = 0;  // of these, without a result
  uint64_t offset = 0;   // of its memory in the tensor
  Request asked;
  // Results that would go over input which frames to earlier owners may still carry: copied when those are gone.
  struct Held {
    uint64_t offset = 0;  // in the request's memory
    Buffer result;
  };
  std::vector<Held> held;

  bool in_place() const { return asked.output.data() == asked.input.bytes().data(); }
};

// The last answer to a push of a partition that accumulates. It is kept until the next one: should the owner be lost,
// its successor goes on from the highest version that a worker has.
struct Accumulated {
  Buffer answer;  // the running sum, and the counts behind it
  uint64_t version = 0;
};

// What is missing from an owner, for waiting_for().
struct OwnerState {
  uint32_t missing = 0;  // partitions of requests in flight without a result
  uint32_t pushed = 0;   // of these, pushed at least once
  absl::Duration since;  // when it last gave something, or when it was first asked after that
};

struct Session::Core {
  Core(const Options& options, BufferPool* pool)
      : options_(options),
        pool_(pool),
        queue_(options.window_bytes, options.worker, options.stall_after, options.defer_retry),
        acks_(pool) {}

  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions);
  absl::Status start(Request request, absl::Duration now, Actions& actions);
  void on_connected(uint32_t owner, absl::Duration now, Actions& actions);
  absl::Status on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                        Actions& actions);
  void on_tick(absl::Duration now, Actions& actions);
  void fail(const absl::Status& status, Actions& actions);
  std::vector<uint32_t> waiting_for() const;

  absl::Status check_answer(uint32_t index, const wire::Header& header) const;
  void move(const plan::Plan& later, absl::Duration now);
  void tell_progress(uint32_t owner, uint32_t since, Actions& actions);
  absl::Status on_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload, absl::Duration now,
                         Actions& actions);
  absl::Status on_defer(uint32_t owner, uint32_t index, const wire::Header& header, absl::Duration now);
  absl::Status on_release(uint32_t owner, const wire::Header& header, const Buffer& payload);
  void take_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload, absl::Duration now,
                   Actions& actions);
  void hand_on(uint32_t owner, uint32_t index, const wire::Header& wanted, Actions& actions);
  bool owes_acks() const;
  void ask_for_release(absl::Duration now, Actions& actions);
  void ask_for_release(uint32_t owner, Actions& actions);
  wire::PartitionKey key_of(uint32_t index) const;  // how far this worker is with a partition
  bool accumulates(uint32_t index) const { return plan_->tensors[plan_->partitions[index].tensor].accumulates; }
  uint64_t version_of(uint32_t index, const Buffer& answer) const;
  absl::Status check_accumulated(uint32_t index, const wire::Header& header, const Buffer& payload) const;
  void keep_accumulated(uint32_t index, Buffer answer);
  void hand_on_accumulated(uint32_t owner, uint32_t index, const wire::Header& wanted, Actions& actions);

  bool in_flight(const Request& request) const;
  uint32_t open_request(Request request);
  void send_pushes(absl::Duration now, Actions& actions);
  void push(uint32_t partition, absl::Duration now, Actions& actions);
  void acknowledge(uint32_t owner, uint32_t index, Actions& actions);
  void flush_acks(uint32_t owner, Actions& actions);
  void complete(Actions& actions);
  wire::Header header_of(wire::FrameType type, const Buffer& payload) const;

  const Options options_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  SendQueue queue_;
  AckBatches acks_;
  Retention retention_;
  std::vector<PartitionState> partitions_;  // as in the plan
  std::vector<Accumulated> accumulated_;    // the same; of those that accumulate
  uint64_t accumulated_bytes_ = 0;
  std::vector<RequestState> requests_;
  std::vector<uint32_t> free_;  // of requests_
  std::vector<OwnerState> owners_;
  std::vector<uint32_t> whole_;  // requests with all results whose input a frame may still refer to
  uint32_t active_ = 0;          // requests in flight
  bool ending_ = false;
  uint64_t started_ = 0;         // requests, ever
  uint64_t started_before_ = 0;  // by the last tick
  absl::Duration release_pause_;
  absl::Duration ask_again_at_;
  absl::Status failure_;  // of fail()
  Counters counters_;
};

}  // namespace gleaner::session
