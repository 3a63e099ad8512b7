// Cursor executes a worker's program for one partition in one push_pull: a position in the program, the *work buffer*
// in which partial sums come to be (or contributions gather), the results, and the slices that have arrived and wait
// for their receives. Pure.
//
// Types. Contributions have the type in which the exchange gets them. Partial sums have the accumulator's type, fp32
// for fp16 and bf16, so that no sum is rounded or overflows on its way. Once a sum is complete, kFinish divides it and
// rounds it to the tensor's type. Results travel in this type. Where both types are the same, results lie in the work
// buffer.
//
// The i-th slice of a peer belongs to the i-th receive from this peer, whatever comes from other peers meanwhile. So
// the sum depends on the program alone. Slices without elements do not exist: neither side sends or expects them.
//
// A cursor takes slices before begin(), too: other workers may begin a push_pull earlier.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm-lib/executor/arrived_slices.h"
#include "comm-lib/executor/layout.h"
#include "comm-lib/executor/program.h"
#include "common/base/accumulator.h"
#include "common/base/buffer.h"
#include "common/base/bytes.h"
#include "common/kernels/kernels.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

class Cursor {
 public:
  enum class Event : uint8_t {
    kSend,      // `slice` is to be sent to the operation's peer
    kReceived,  // the operation has taken a slice
    kBlocked,   // the operation is next, and waits for a slice from its peer
    kEnded,     // the program has ended: write_result()
  };
  struct Outcome {
    Event event = Event::kEnded;
    const Program::Operation* operation = nullptr;  // null: kEnded
    Buffer slice;                                   // kSend: a part of the work buffer, or of the results
  };
  struct Types {
    DataType contribution = DataType::kFloat32;
    DataType result = DataType::kFloat32;  // the tensor's
    DataType partial() const { return accumulator_of(result); }
  };

  // Goes to the start of `program`, for a partition of `elements` elements. `program` and `arrived` must outlive the
  // push_pull.
  void open(const Program* program, uint64_t elements, const Types& types, ArrivedSlices* arrived);
  // Goes to the start of the program of a call (calls.h), whose chunks lie from begins[i] to begins[i + 1], in bytes.
  void open(const Program* program, std::span<const uint64_t> begins, ArrivedSlices* arrived);
  // Begins with a copy of `contribution`, which is that of `worker`. Takes buffers from `pool`. Results are sums that
  // are divided by `divisor`.
  void begin(ConstBytes contribution, uint32_t worker, uint32_t divisor, BufferPool& pool,
             const kernels::Kernels& kernels);
  // Begins a call. `work` has the chunks with which this rank begins. `places`: for each chunk, where the bytes of a
  // receive go; null: into the work buffer. A chunk that has a place must not be sent. The memory belongs to the
  // caller, and must stay valid until the end.
  void begin(Buffer work, std::span<std::byte* const> places);
  bool has_begun() const { return has_begun_; }
  // Forgets the buffers, and the slices that wait.
  void close();

  // Returns the size of the next slice from `source`, in bytes. 0: the program receives no more slices from there.
  uint64_t expected_bytes(uint32_t source) const;
  // Takes the next slice from `source`, which has expected_bytes(source) bytes.
  void add(uint32_t source, Buffer slice);
  // Returns whether a slice from `source` has been taken.
  bool has_slice_from(uint32_t source) const {
    return sources_[source].next_receive != program_->first_receive(source, layout_);
  }

  // Executes the next operation that has elements, unless it is a receive without a slice. To be called again until the
  // end, and after kBlocked once add() got the slice that the operation waits for. Needs has_begun().
  Outcome advance(const kernels::Kernels& kernels);
  // Writes the results, `elements` of the tensor's type. Needs kEnded.
  void write_result(std::byte* output, const kernels::Kernels& kernels);

  // Returns the receive to which the next slice from `source` belongs. Needs expected_bytes(source) > 0.
  const Program::Operation& next_receive(uint32_t source) const {
    return program_->operations()[sources_[source].next_receive];
  }
  // Returns the size of the slice that an operation of the program sends or receives.
  uint64_t bytes_of(const Program::Operation& operation) const {
    return layout_.range_of(operation.slice).count * width_of(operation);
  }
  // Returns the type of the elements of the slice that an operation of the program sends or receives.
  DataType type_of(const Program::Operation& operation) const {
    switch (operation.content) {
      case Program::Content::kContributions:
        return types_.contribution;
      case Program::Content::kPartialSums:
        return types_.partial();
      case Program::Content::kResults:
        return types_.result;
    }
    return types_.result;
  }

  // The layout and the work buffer of a call.
  const Layout& layout() const { return layout_; }
  const Buffer& work() const { return work_; }
  // Returns the size of an element of that slice.
  uint64_t width_of(const Program::Operation& operation) const {
    const DataType type = type_of(operation);
    return type == wire::kNoType ? 1 : size_of(type);
  }
  const Program& program() const { return *program_; }
  uint64_t elements() const { return elements_; }
  uint64_t contribution_bytes() const { return elements_ * size_of(types_.contribution); }

 private:
  struct Source {
    uint32_t next_receive = Program::kNone;  // index of the receive to which the next slice to arrive belongs
    ArrivedSlices::Queue arrived;
  };
  // Returns the buffer of which the slice of an operation is a part.
  const Buffer& buffer_of(const Program::Operation& operation) const {
    return operation.content == Program::Content::kResults ? results_ : work_;
  }
  void open(const Program* program, ArrivedSlices* arrived);
  void receive(const Program::Operation& operation, const Layout::Range& range, const kernels::Kernels& kernels);
  void place(const collective::Slice& chunks, const Buffer& slice);
  void finish(const Layout::Range& range, const kernels::Kernels& kernels);

  const Program* program_ = nullptr;
  ArrivedSlices* arrived_ = nullptr;
  uint64_t elements_ = 0;
  std::vector<uint64_t> begins_;    // of a call's chunks
  std::vector<std::byte*> places_;  // of a call: by chunk
  Layout layout_ = {0, 1};
  Types types_;
  uint32_t divisor_ = 1;
  bool has_begun_ = false;
  uint32_t next_ = 0;                            // index of the next operation
  Buffer work_;                                  // contributions, or partial sums
  Buffer results_;                               // empty for an all-gather
  std::vector<const std::byte*> contributions_;  // all-gather: by worker, during write_result()
  std::vector<Source> sources_;
};

}  // namespace gleaner::executor
