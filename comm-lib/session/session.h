// The worker's protocol core: takes push_pull requests and frames, returns frames to send and requests that are done.
// No I/O, no clock, no thread.
//
// A request's partitions become ready at once and leave in the order (tensor priority, position in the plan), so that
// gradients which the next forward pass needs first overtake the others. Ready partitions leave while the window has
// room: `window_bytes` over all owners, and per owner a limit in proportion to its share, so that little waits in
// kernel buffers and a late but urgent partition is soon on the wire. Partitions of owners without credit are passed
// over, not waited for. The window is soft: workers may push in different orders, and a full window of partitions that
// other workers have not begun must not stop the job. When nothing has come back for `stall_after`, the window doubles,
// and again and again until a result comes; then it falls back to its size. An owner's part of the window doubles in
// the same way when nothing comes from that owner.
//
// A contribution is pushed until its result is here: again on every new connection to its owner, and after a kDefer.
// The result is copied to the request's output only when it is whole and checked, so the contribution stays intact
// until then, and the output may be the same memory as the input. Results are acknowledged in batches, which leave with
// the next push to that owner and so cost no packet of their own, or else with the next tick. A new connection
// acknowledges the latest result of each partition once more, since the last connection may have lost acknowledgements.
//
// A plan change may give partitions to other owners while they are in flight. From then on frames of their earlier
// owners about them are ignored. This worker tells the new owners how far it is with each partition, and pushes those
// in flight once more. Results are retained until every worker has them (retention.h), and handed on if a new owner
// asks, which lacks a result that the last owner made and not every worker got. Answers of epochs above the plan
// applied here are taken: an owner may be ahead.
//
// A tensor that accumulates is answered with a running sum and its counts (summation-service/engine/accumulate.h). The
// last answer of each of its partitions is kept for the rest of the job, and new owners are told its version instead of
// a step.
//
// A request is done when all its results are here and no frame refers to its input any more. The session keeps one
// handle to the input; frames that it hands out hold slices, and a summer in the same process keeps such a slice until
// its sum. The caller that starts a request keeps no handle of its own.
//
// Per partition, once warm: no allocation, no lock, no system call (tests/unit counts them).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

struct Options {
  uint64_t job = 0;            // job_number()
  uint32_t worker = 0;         // member index of this worker
  uint64_t window_bytes = 0;   // pushed without a result, over all owners; 0: plan::window_bytes()'s choice
  absl::Duration stall_after;  // 0: as SendQueue chooses it
  absl::Duration defer_retry = absl::Milliseconds(2);  // first pause after a kDefer, doubled up to 64 times that
};

// One push_pull of a tensor, or of consecutive partitions of it: whoever has a tensor bit by bit asks for each bit as
// it comes.
struct Request {
  uint64_t id = 0;      // the caller's, comes back in Done
  uint32_t tensor = 0;  // index in the plan
  ReduceOp op = ReduceOp::kSum;
  Buffer input;                 // the partitions' bytes (usually borrowed), unchanged until Done
  MutableBytes output;          // as many bytes; may be the same memory
  uint32_t first = 0;           // partition within the tensor
  uint32_t count = UINT32_MAX;  // of partitions, at most
};

struct Send {
  uint32_t owner = 0;
  wire::Header header;  // lacks what Connection::send() seals
  Buffer payload;
};

struct Done {
  uint64_t id = 0;
  absl::Status status;  // OK: output holds the sum
};

// Filled by the session, emptied and reused by the caller.
struct Actions {
  std::vector<Send> sends;
  std::vector<Done> done;
  // Not OK: an owner will never take what this worker sent, and says why. The caller ends the session with it, see
  // fail().
  absl::Status refused;
};

struct Counters {
  uint64_t pushed_bytes = 0;     // payload, repeats included
  uint64_t repeated_pushes = 0;  // after a reconnect or a kDefer
  uint64_t results = 0;
  uint64_t duplicate_results = 0;
  uint64_t deferred = 0;
  uint64_t stalls = 0;             // times the window grew
  uint64_t moved = 0;              // partitions that changed their owner while they were in flight
  uint64_t handed = 0;             // results handed on
  uint64_t retained_bytes = 0;     // of results, for other workers and later owners
  uint64_t outstanding_bytes = 0;  // pushed without a result yet
  uint64_t window_used_bytes = 0;  // of those, what does not go to this worker's own summer
  uint64_t window_bytes = 0;       // in force, growth included
};

class Session {
 public:
  explicit Session(const Options& options, BufferPool* pool);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The first plan, which comes before any connection, or a successor of the one in force (plan/successor.h), else
  // FailedPrecondition. Connections to members whose places have changed hands are gone: on_disconnected() comes first.
  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions);

  // Begins a push_pull. InvalidArgument: unknown tensor or partitions, wrong size, an op the type has not, output
  // overlapping input in part; FailedPrecondition: no plan yet, or one of these partitions is still in flight. What has
  // zero bytes is done at once.
  absl::Status start(Request request, absl::Duration now, Actions& actions);

  // The connection to an owner is up (frames may be sent) or gone.
  void on_connected(uint32_t owner, absl::Duration now, Actions& actions);
  void on_disconnected(uint32_t owner);

  // A kResult, kDefer, kFetch, kRelease, kRefuse or kCommitted from `owner`. An error: this peer broke the protocol,
  // close the connection with it.
  absl::Status on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                        Actions& actions);

  // What connections have seen of the path to the farthest owner, from time to time; after the first apply().
  void set_round_trip(absl::Duration round_trip);

  // Call every few milliseconds while anything is in flight.
  void on_tick(absl::Duration now, Actions& actions);

  // A worker has left the job well: no sum can be made any more, and everybody has those that were.
  void set_ending();

  // Ends every request with `status`, and every later one at once (start() is OK then, Done has the status). It does
  // not wait for frames that refer to inputs: the caller has closed its connections, and stopped a summer in this
  // process, before it tells anybody that the request is over.
  void fail(const absl::Status& status, Actions& actions);

  uint64_t step(uint32_t tensor, uint32_t partition) const;  // of its request in flight, or else of the next one
  // Nothing in flight, every result acknowledged, and no other worker may need one from here.
  bool idle() const;
  // For messages to people: the owners from whom results are missing, most overdue first.
  std::vector<uint32_t> waiting_for() const;
  const Counters& counters() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace gleaner::session
