#include "comm-lib/executor/call_programs.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/wire/frame.h"

namespace gleaner::executor {
namespace {

using collective::Postcondition;

// A part has at most this many bytes of a block, so that the steps of a schedule overlap.
constexpr uint64_t kMostPartBytes = uint64_t{512} << 10;
// From this size on, a vector's time on the network counts more than the number of a schedule's steps.
constexpr uint64_t kLargeBytes = uint64_t{64} << 10;

constexpr uint32_t kLargeBit = uint32_t{1} << 8;
constexpr uint32_t kRootShift = 16;

Postcondition collective_of(uint32_t code) { return static_cast<Postcondition>(code & 0xff); }

const char* algorithm_of(uint32_t code) {
  const bool is_large = (code & kLargeBit) != 0;
  switch (collective_of(code)) {
    case Postcondition::kBroadcast:
      return is_large ? "scatter-ring" : "binomial";
    case Postcondition::kAllGather:
      return "gather";
    case Postcondition::kGather:
    case Postcondition::kScatter:
      return is_large ? "direct" : "binomial";
    default:
      return "direct";
  }
}

uint64_t part_bytes(const collective::Schedule& schedule, uint32_t rank) {
  uint32_t most_chunks = 1;
  for (const collective::Op& op : schedule.programs[rank]) most_chunks = std::max(most_chunks, op.slice.count);
  const uint64_t blocks = std::max<uint64_t>(1, most_chunks / schedule.chunks_per_block());
  return std::min<uint64_t>(kMostPartBytes, wire::kMaxPayloadBytes / blocks);
}

}  // namespace

CallProgram::CallProgram(const collective::Schedule& schedule, const Group& group)
    : collective_(schedule),
      rank_(group.rank),
      chunks_per_block_(schedule.chunks_per_block()),
      blocks_(schedule.postcondition == Postcondition::kAllToAll ? 2 * schedule.ranks : schedule.blocks()),
      program_(
          schedule, group.members, group.rank, group.workers,
          [this](uint32_t chunk) {
            return local_block(chunk / chunks_per_block_) * chunks_per_block_ + chunk % chunks_per_block_;
          },
          blocks_ * chunks_per_block_),
      ranks_(group.workers),
      moves_(blocks_),
      most_part_bytes_(part_bytes(schedule, group.rank)) {
  for (uint32_t i = 0; i < group.members.size(); ++i) ranks_[group.members[i]] = i;
  for (uint32_t block = 0; block < schedule.blocks(); ++block) {
    if (schedule.begins_with(rank_, block)) begins_with_.push_back(local_block(block));
    if (schedule.ends_with(rank_, block)) ends_with_.push_back(local_block(block));
  }
  for (const Program::Operation& operation : program_.operations()) {
    for (uint32_t i = 0; i < operation.slice.count && operation.slice.first < chunks(); ++i) {
      moves_[(operation.slice.first + i) / chunks_per_block_] = true;
    }
  }
}

uint32_t CallProgram::local_block(uint32_t block) const {
  if (collective_.postcondition != Postcondition::kAllToAll) return block;
  const uint32_t from = block / collective_.ranks, to = block % collective_.ranks;
  return to == rank_ ? from : collective_.ranks + to;
}

void CallProgram::lay_out(std::span<const uint64_t> bytes, std::vector<uint64_t>& begins) const {
  begins.assign(1, 0);
  for (uint32_t block = 0; block < blocks_; ++block) {
    const uint64_t first = begins.back();
    for (uint32_t chunk = 1; chunk <= chunks_per_block_; ++chunk) {
      begins.push_back(first + collective::chunk_begin(bytes[block], chunks_per_block_, chunk));
    }
  }
  // Receipts where messages go one way only.
  std::vector<bool> sends(collective_.ranks), receives(collective_.ranks);
  for (const Program::Operation& operation : program_.operations()) {
    if (operation.slice.first >= chunks() || Layout(begins).range_of(operation.slice).count == 0) continue;
    (operation.kind == Program::Kind::kSend ? sends : receives)[ranks_[operation.peer]] = true;
  }
  for (uint32_t peer = 0; peer < collective_.ranks; ++peer) {
    begins.push_back(begins.back() + (receives[peer] && !sends[peer] ? 1 : 0));
  }
  for (uint32_t peer = 0; peer < collective_.ranks; ++peer) {
    begins.push_back(begins.back() + (sends[peer] && !receives[peer] ? 1 : 0));
  }
}

uint32_t CallPrograms::code_of(Postcondition collective, uint32_t root, uint64_t bytes) {
  return static_cast<uint32_t>(collective) | (bytes >= kLargeBytes ? kLargeBit : 0) | root << kRootShift;
}

std::string CallPrograms::describe(uint32_t code) {
  const Postcondition collective = collective_of(code);
  std::string text = absl::StrCat(collective::name_of(collective), " of ",
                                  (code & kLargeBit) != 0 ? "at least" : "less than", " 64 KiB");
  if (collective::has_root(collective)) absl::StrAppend(&text, " with root ", code >> kRootShift);
  return text;
}

absl::StatusOr<const CallProgram*> CallPrograms::find(uint32_t number, const Group& group, Postcondition collective,
                                                      uint32_t root, uint64_t bytes) {
  const uint32_t code = code_of(collective, root, bytes);
  std::unique_ptr<const CallProgram>& program = programs_[{number, code}];
  if (program == nullptr) {
    collective::Spec spec;
    spec.algorithm = algorithm_of(code);
    const auto schedule = collective::make_schedule(
        spec, {static_cast<uint32_t>(group.members.size()), collective, root}, collective::OnlyRank(group.rank));
    GLN_RETURN_IF_ERROR(schedule.status());
    program = std::make_unique<const CallProgram>(*schedule, group);
  }
  return program.get();
}

}  // namespace gleaner::executor
