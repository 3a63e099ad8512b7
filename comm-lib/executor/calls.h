// Calls executes collectives that the ranks of a group call, such as those of a torch.distributed process group. Unlike
// the push_pull of a tensor, a call is in no plan: a group's members agree on the order of their calls, and the number
// of a call in its group is the key by which they find each other. A call moves bytes, and does not add.
//
// Parts. A call is cut into *parts*, which are runs of the machine (machine.h) beside each other: part p has the bytes
// from p * part_bytes on of each block, up to part_bytes of them. A block without such bytes has none in that part, and
// neither side sends or expects it. So blocks may differ in size, as in an all-to-all with splits.
//
// Memory. A part's work buffer has a copy of the blocks that this rank sends, since a slice may be sent again after the
// call has ended. Blocks that arrive and are not sent on go straight to the output.
//
// Agreement. Members must call the same collective with the same root and sizes. A slice of another collective, or of
// another size, is an error that names both workers and the call, and ends the job: bytes that one member does not
// expect would shift all later ones.
//
// Early slices. A member that is ahead sends slices of a call that this worker has not made yet. They wait here, in the
// buffers in which they came (early_frames.h). A call ends on the rank where its bytes come from only once all ranks
// that they reach have begun it (program.h: receipts). So what waits here is at most what the other members have in
// flight: the machine's limit for each group, or the calls that their programs have made and not waited for. A member
// that exceeds the limit for groups that this worker has not made ends the job.
//
// Removed groups. A member removes a group once its own calls have ended, while others may be behind. Its slices for
// them wait in the links, and need no group. The number of a group can't be used again, so that a late frame never
// meets another group. A late kAwait is ignored. A frame about a further call, which this worker can't make any more,
// is an error, as calls in another order are.
//
// No deadlock. The calls of a group begin in their order on every member, and the first may always begin. So the
// argument of start_queue.h holds for each group by itself, whatever its members wait for in other groups or tensors.
//
// Pure. Belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/executor/call_programs.h"
#include "comm-lib/executor/early_frames.h"
#include "comm-lib/executor/machine.h"
#include "common/base/buffer.h"
#include "common/base/bytes.h"
#include "common/base/slots.h"
#include "common/collective/postcondition.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

// One call of one member.
struct Call {
  uint64_t id = 0;  // chosen by the caller, returned in Done
  uint32_t group = 0;
  collective::Postcondition collective = collective::Postcondition::kAllGather;  // one that does not add
  uint32_t root = 0;                                                             // a rank of the group
  uint32_t kind = 0;  // less than CallPrograms::kKinds; ranks whose calls have other kinds differ
  // The blocks with which this rank begins, and those with which it ends, one after the other. Both must stay as they
  // are until Done, and do not overlap. Empty where the collective has none for this rank.
  ConstBytes input;
  MutableBytes output;
  // All-to-all only: the bytes for and from each rank. Empty: all blocks have the same size.
  std::vector<uint64_t> sent, received;
};

class Calls final : public RunOwner {
 public:
  static bool is_about_call(const wire::Header& header) { return (header.tensor & wire::kCallBit) != 0; }

  // `machine` and `pool` must outlive the Calls. `worker`: this worker's number.
  Calls(uint32_t worker, Machine* machine, BufferPool* pool) : worker_(worker), machine_(*machine), pool_(*pool) {}

  // Makes a group of these workers, of `workers` in the job: member i has rank i. InvalidArgument: a worker is named
  // twice or does not exist, this worker is no member, or the number is or was that of a group.
  absl::Status add_group(uint32_t group, std::vector<uint32_t> members, uint32_t workers);

  // Removes a group, whose number then stays used. FailedPrecondition: a call of it is in flight. InvalidArgument:
  // there is no such group.
  absl::Status remove_group(uint32_t group, Actions& actions);

  // Starts a call. InvalidArgument: there is no such group, the collective adds, or sizes do not fit the collective.
  absl::Status start(const Call& call, absl::Duration now, Actions& actions);

  // Handles a kSlice or kAwait about a call. A slice has been counted by its link. An error ends the job.
  absl::Status on_frame(const wire::Header& header, Buffer payload, absl::Duration now, Actions& actions);

  // Returns whether another member has sent something for this worker's next call of a group.
  bool has_arrived(uint32_t group) const;

  uint32_t in_flight() const { return calls_.in_use(); }
  // Returns for messages which call has this id and for whom it waits, such as "call 7 of group 3 (all-gather) waits
  // for rank 1 (worker 4)". The first part of the call that has not ended decides: the ranks named are those from which
  // it has nothing, or else those from which it lacks bytes. Such a rank may in turn wait for others. Empty: no call in
  // flight has this id.
  std::string describe(uint64_t id) const;
  // Ends all calls.
  void fail(const absl::Status& status, Actions& actions);

 private:
  struct Numbered : Group {
    uint64_t next = 0;     // number of the next call
    StartQueue starts{2};  // its calls begin in their order on every member, whatever other groups do
  };
  // A block of the work buffer, and where the caller has it.
  struct Placed {
    uint32_t block = 0;
    uint64_t offset = 0;  // in the call's input or output
  };
  // A call in flight.
  struct Open {
    uint64_t id = 0;
    uint32_t group = 0;
    uint64_t number = 0;  // in the group
    collective::Postcondition collective = collective::Postcondition::kAllGather;
    ConstBytes input;
    MutableBytes output;
    const CallProgram* program = nullptr;
    std::vector<uint64_t> bytes;  // of each block of the work buffer
    std::vector<Placed> inputs;   // blocks that others need
    std::vector<Placed> outputs;  // blocks that others send
    uint32_t missing = 0;         // number of parts that have not ended
  };
  using Key = EarlyFrames::Key;

  void begin(Run& run) override;
  void take_results(Run& run) override;
  void finish(uint32_t run, Actions& actions) override;

  absl::Status measure(const Call& call, const Group& group, const CallProgram& program, Open& open) const;
  absl::Status check_no_more(uint32_t subject, uint64_t number) const;
  absl::Status call_of_removed(const wire::Header& header) const;
  absl::Status place(const Call& call, const CallProgram& program, Open& open) const;
  uint32_t open_run(uint32_t call, const Subject& subject, StartQueue* queue);
  absl::Status deliver(uint32_t run, const wire::Header& header, Buffer payload, absl::Duration now, Actions& actions);
  std::string name_of(const Open& call) const;
  std::string describe_missing(const Run& run) const;

  const uint32_t worker_;
  Machine& machine_;
  BufferPool& pool_;
  CallPrograms programs_;
  std::map<uint32_t, Numbered> groups_;
  std::map<uint32_t, uint64_t> removed_;  // by number of a removed group, how many calls it had
  uint32_t started_ = 0;                  // number of calls, ever
  Slots<Open> calls_;
  std::map<Key, uint32_t> runs_;
  EarlyFrames early_;
  std::vector<uint64_t> begins_;    // of the part that opens
  std::vector<std::byte*> places_;  // of the part that begins
};

}  // namespace gleaner::executor
