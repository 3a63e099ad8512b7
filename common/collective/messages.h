// Messages pairs the sends of a schedule with its receives, and runs schedules in an order that these pairs allow. The
// checker, the oracle, the cost model and the simulator are built on it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

struct Message {
  uint32_t from = 0;     // a rank
  uint32_t to = 0;       // a rank
  uint32_t send = 0;     // index of the send in the program of `from`
  uint32_t receive = 0;  // index of the receive in the program of `to`
  uint32_t step = 0;
  Slice slice;
  Take take = Take::kCopy;
};

class Messages {
 public:
  // Pairs the operations of a schedule. InvalidArgument names the rank and the operation that is wrong by itself or has
  // no partner: a peer, slice or step out of range, steps that decrease, a send to itself, a message that nobody
  // receives, a receive that nobody sends to, or a send and a receive that differ in slice, step or take. Also if the
  // programs are not one for each rank, the root is no rank, blocks are not chunks, or a stage names a rank that does
  // not exist or names it twice.
  static absl::StatusOr<Messages> make(const Schedule& schedule);

  // All messages, by sending rank, then in the order of its sends.
  const std::vector<Message>& all() const { return all_; }
  // Returns the index in all() of the message that an operation sends or receives.
  uint32_t index_of(uint32_t rank, size_t op) const { return message_of_[first_op_[rank] + op]; }

  // Calls `execute` for each operation, in the order of each program, and for a receive only after its send. The order
  // is the same each time. InvalidArgument: ranks wait for each other for ever; the message names them. Stops at the
  // first error of `execute`, and returns it.
  absl::Status run(const Schedule& schedule,
                   absl::FunctionRef<absl::Status(uint32_t rank, uint32_t op, uint32_t message)> execute) const;

 private:
  std::vector<Message> all_;
  std::vector<uint32_t> message_of_;  // by rank, then operation
  std::vector<size_t> first_op_;      // by rank: the index of its first operation in message_of_
};

// Returns the number of messages of a schedule whose operations have their partners.
uint64_t message_count(const Schedule& schedule);

// Describes an operation in messages: "rank 2, operation 7 (send of chunks 4 to 5 to rank 3)".
std::string describe(const Schedule& schedule, uint32_t rank, size_t op);

}  // namespace gleaner::collective
