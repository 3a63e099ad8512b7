// CallPrograms makes the programs by which a rank of a group executes its calls (calls.h), and keeps them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/executor/layout.h"
#include "comm-lib/executor/program.h"
#include "common/base/bytes.h"
#include "common/collective/postcondition.h"

namespace gleaner::executor {

// The ranks of a group are workers.
struct Group {
  std::vector<uint32_t> members;  // by rank
  uint32_t rank = 0;              // of this worker
  uint32_t workers = 0;           // of the job
};

// CallProgram is the program of a rank for one collective. Its work buffer has the blocks that the rank needs, in the
// order of their numbers in the vector (common/collective/postcondition.h): all blocks, or in an all-to-all first those
// that the rank ends with and then those that it begins with.
class CallProgram {
 public:
  // `schedule` has the program of the group's rank at least, and a collective that does not add.
  CallProgram(const collective::Schedule& schedule, const Group& group);

  const Program& program() const { return program_; }
  // Returns the blocks of the work buffer, and those with which the rank begins and ends.
  uint32_t blocks() const { return blocks_; }
  const std::vector<uint32_t>& begins_with() const { return begins_with_; }
  const std::vector<uint32_t>& ends_with() const { return ends_with_; }
  // Returns whether a message of the rank has bytes of a block.
  bool moves(uint32_t block) const { return moves_[block]; }
  // Returns whether the rank sends bytes of a block.
  bool sends(uint32_t block) const { return sends_[block]; }
  // Returns the most bytes that each block of a part has. Every message then fits into a frame.
  uint64_t most_part_bytes() const { return most_part_bytes_; }
  // Sets `begins` to where the chunks of the work buffer lie, in bytes, if block i has bytes[i] bytes (Layout).
  void lay_out(std::span<const uint64_t> bytes, std::vector<uint64_t>& begins) const;
  // Returns the chunks of the work buffer that a block has.
  collective::Slice chunks_of(uint32_t block) const { return {block * chunks_per_block_, chunks_per_block_}; }
  // Sets places[i] for each chunk i of a block that the rank receives and does not send on: it goes straight to
  // `output`, where the block's bytes of a part, which has this layout, begin at `offset`. Chunks without bytes have no
  // place.
  void find_places(uint32_t block, const Layout& layout, MutableBytes output, uint64_t offset,
                   std::span<std::byte*> places) const;
  // Returns the number of chunks of the work buffer: those of blocks, and behind them those of receipts.
  uint32_t chunks_with_receipts() const { return chunks() + 2 * collective_.ranks; }

 private:
  uint32_t local_block(uint32_t block) const;
  uint32_t chunks() const { return blocks_ * chunks_per_block_; }

  const collective::Collective collective_;
  const uint32_t rank_;
  const uint32_t chunks_per_block_;
  const uint32_t blocks_;
  Program program_;
  std::vector<uint32_t> ranks_;  // by worker; only members count
  std::vector<uint32_t> begins_with_, ends_with_;
  std::vector<bool> moves_, sends_;
  uint64_t most_part_bytes_ = 0;
};

class CallPrograms {
 public:
  static constexpr uint32_t kKinds = 2048;
  // Returns the program of group `number` for the collective with this code, which lives until forget().
  // InvalidArgument: the collective adds.
  absl::StatusOr<const CallProgram*> find(uint32_t number, const Group& group, uint32_t code);
  // Drops the programs of a group. No run may execute one.
  void forget(uint32_t number);
  // Returns the number by which frames say which collective a call is (Subject::schedule). `bytes`: of the whole
  // vector, so that all ranks of the group find the same. `root` is a rank of the group, `kind` less than kKinds.
  static uint32_t code_of(collective::Postcondition collective, uint32_t root, uint64_t bytes, uint32_t kind,
                          const Group& group);
  // Returns "broadcast of less than 64 KiB with root 3", for example, of such a number.
  static std::string describe(uint32_t code);

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<const CallProgram>> programs_;  // by group and code
};

}  // namespace gleaner::executor
