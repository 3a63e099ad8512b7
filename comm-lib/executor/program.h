// Program is the list of operations that one worker executes for each partition whose tensor has a certain schedule
// (common/collective/schedule.h). Its peers are workers, no ranks. A Program never changes. Pure.
//
// Messages carry what the schedule's postcondition asks for. An all-reduce sends *partial sums*, which the receiver
// adds, and *results*, which the receiver keeps. So a Program has one operation that schedules don't have: kFinish
// turns complete sums into results, before the first message that carries them, or at the end. An all-gather sends
// *contributions*.
//
// A *source* is a worker from which the program receives. Sources are numbered in the order of their first receives.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm-lib/executor/layout.h"
#include "common/collective/schedule.h"

namespace gleaner::executor {

class Program {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  enum class Kind : uint8_t { kSend, kAdd, kCopy, kFinish };
  enum class Content : uint8_t { kContributions, kPartialSums, kResults };
  struct Operation {
    Kind kind = Kind::kSend;
    Content content = Content::kPartialSums;  // of the message
    uint32_t peer = 0;                        // a worker
    uint32_t source = kNone;                  // of a receive: the number of the peer
    uint32_t next_from = kNone;               // of a receive: index of the next receive from the same peer
    uint32_t step = 0;                        // of the schedule
    collective::Slice slice;
  };
  // `ranks`: by worker, its rank in the schedule; empty: worker i has rank i. Reads only the program of the worker's
  // rank in an all-reduce or all-gather.
  Program(const collective::Schedule& schedule, std::span<const uint32_t> ranks, uint32_t worker);
  // The program of a rank in a call (calls.h), whose messages are all copied. `members`: by rank, the worker.
  // `workers`: their number in the job. `chunk_of`: the number that a chunk has in this rank's work buffer.
  //
  // *Receipts*: a chunk for each rank, at `receipts`, which this rank sends to the ranks from which it receives; and
  // behind these a chunk for each rank, which it receives from those to which it sends, at the end. Each has one
  // element if messages go one way only between the two ranks, and else none. So a call ends only once each peer has
  // begun it. Receipts are sent first, or with `late_receipts` last, after those from others.
  Program(const collective::Schedule& schedule, std::span<const uint32_t> members, uint32_t rank, uint32_t workers,
          const std::function<uint32_t(uint32_t)>& chunk_of, uint32_t receipts, bool late_receipts);

  const std::vector<Operation>& operations() const { return operations_; }
  // All-gather: by worker, the block of its contribution; n of them. All-reduce: empty.
  const std::vector<uint32_t>& blocks() const { return blocks_; }
  bool gathers() const { return !blocks_.empty(); }
  // Returns the number of elements of the work buffer for a partition: of all blocks together.
  uint64_t work_elements(uint64_t elements) const { return gathers() ? elements * blocks_.size() : elements; }
  Layout layout_of(uint64_t elements) const { return {work_elements(elements), chunks_}; }
  // Returns the most elements that one message of a partition has.
  uint64_t largest_message(uint64_t elements) const;
  size_t sources() const { return first_from_.size(); }
  // Returns the number of a source; kNone: the program receives nothing from the worker.
  uint32_t source_of(uint32_t worker) const { return source_of_[worker]; }
  // Returns the first receive from `source` that takes elements. kNone: there is none.
  uint32_t first_receive(uint32_t source, const Layout& layout) const {
    return skip_empty(first_from_[source], layout);
  }
  // Returns the next such receive after `receive`, from the same source.
  uint32_t next_receive(uint32_t receive, const Layout& layout) const {
    return skip_empty(operations_[receive].next_from, layout);
  }

 private:
  // Chunks are empty if a partition has fewer elements than chunks. Neither side exchanges slices without elements.
  uint32_t skip_empty(uint32_t receive, const Layout& layout) const {
    while (receive != kNone && layout.range_of(operations_[receive].slice).count == 0) {
      receive = operations_[receive].next_from;
    }
    return receive;
  }

  void add_message(const collective::Op& op, Content content, uint32_t peer);
  void finish(const collective::Slice& slice, std::vector<bool>& is_finished);

  uint32_t chunks_ = 1;
  std::vector<uint32_t> blocks_;
  std::vector<Operation> operations_;
  std::vector<uint32_t> first_from_;  // by source: index of the first receive
  std::vector<uint32_t> last_from_;   // by source: index of the last receive
  std::vector<uint32_t> source_of_;   // by worker
};

}  // namespace gleaner::executor
