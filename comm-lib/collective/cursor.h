// Cursor executes a worker's program for one partition in one push_pull: a position in the program, the *work buffer*
// in which the partition's sum comes to be, and the slices that have arrived and wait for their receives. Pure.
//
// The i-th slice of a peer belongs to the i-th receive from this peer, whatever comes from other peers meanwhile. So
// the sum depends on the program alone. Slices without elements do not exist: neither side sends or expects them.
//
// A cursor takes slices before begin(), too: other workers may begin a push_pull earlier.
#pragma once

#include <cstdint>
#include <vector>

#include "comm-lib/collective/arrived_slices.h"
#include "comm-lib/collective/program.h"
#include "common/base/buffer.h"
#include "common/base/bytes.h"
#include "common/kernels/kernels.h"

namespace gleaner::collective {

class Cursor {
 public:
  enum class Event : uint8_t {
    kSend,      // `slice` is to be sent to the operation's peer
    kReceived,  // the operation has taken a slice into the work buffer
    kBlocked,   // the operation is next, and waits for a slice from its peer
    kEnded,     // the program has ended, and the work buffer holds the sum
  };
  struct Outcome {
    Event event = Event::kEnded;
    const Program::Operation* operation = nullptr;  // null: kEnded
    Buffer slice;                                   // kSend: a part of the work buffer
  };

  // Goes to the start of `program`, for a partition of `elements` elements that travel in `type`. `program` and
  // `arrived` must outlive the push_pull.
  void open(const Program* program, uint64_t elements, DataType type, ArrivedSlices* arrived);
  // Gives the cursor the work buffer, which holds this worker's contribution.
  void begin(Buffer work);
  bool has_begun() const { return has_begun_; }
  // Forgets the work buffer, and the slices that wait.
  void close();

  // Returns the size of the next slice from `source`, in bytes. 0: the program receives no more slices from there.
  uint64_t expected_bytes(uint32_t source) const;
  // Takes the next slice from `source`, which has expected_bytes(source) bytes.
  void add(uint32_t source, Buffer slice);

  // Executes the next operation that has elements, unless it is a receive without a slice. To be called again until the
  // end, and after kBlocked once add() got the slice that the operation waits for. Needs has_begun().
  Outcome advance(const kernels::Kernels& kernels);

  // Returns the receive to which the next slice from `source` belongs. Needs expected_bytes(source) > 0.
  const Program::Operation& next_receive(uint32_t source) const {
    return program_->operations()[sources_[source].next_receive];
  }
  // Returns the size of the slice that an operation of the program sends or receives.
  uint64_t bytes_of(const Program::Operation& operation) const {
    return program_->range_of(operation, elements_).count * size_of(type_);
  }

  const Buffer& work() const { return work_; }
  uint64_t elements() const { return elements_; }

 private:
  struct Source {
    uint32_t next_receive = Program::kNone;  // index of the receive to which the next slice to arrive belongs
    ArrivedSlices::Queue arrived;
  };
  void receive(const Program::Operation& operation, const Program::Range& range, const kernels::Kernels& kernels);

  const Program* program_ = nullptr;
  ArrivedSlices* arrived_ = nullptr;
  uint64_t elements_ = 0;
  DataType type_ = DataType::kFloat32;
  bool has_begun_ = false;
  uint32_t next_ = 0;  // index of the next operation
  Buffer work_;
  std::vector<Source> sources_;
};

}  // namespace gleaner::collective
