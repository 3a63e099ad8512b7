#include "comm-lib/executor/call_programs.h"

#include <algorithm>

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

constexpr uint32_t kCollectiveMask = 0xf;
constexpr uint32_t kLargeBit = uint32_t{1} << 4;
constexpr uint32_t kHashShift = 5;
constexpr uint32_t kHashMask = CallPrograms::kKinds - 1;
constexpr uint32_t kRootShift = 16;

// Returns a few bits that are likely to differ between groups of other members, or of another order, and that differ
// between kinds.
uint32_t hash_of(const std::vector<uint32_t>& members, uint32_t kind) {
  return (wire::crc32c(std::as_bytes(std::span(members))) + kind) & kHashMask;
}

Postcondition collective_of(uint32_t code) { return static_cast<Postcondition>(code & kCollectiveMask); }

const char* algorithm_of(uint32_t code, size_t ranks) {
  const bool is_large = (code & kLargeBit) != 0;
  switch (collective_of(code)) {
    case Postcondition::kBroadcast:
      return is_large && ranks > 2 ? "scatter-ring" : "binomial";
    case Postcondition::kAllGather:
      return is_large ? "direct" : "gather";
    case Postcondition::kGather:
    case Postcondition::kScatter:
      return is_large ? "direct" : "binomial";
    default:
      return "direct";
  }
}

// Returns the same on all ranks. A message has at most half of the blocks where ranks pass on those of others, and a
// work buffer at most all blocks that a rank sends and receives.
uint64_t part_bytes(const collective::Collective& collective) {
  if (collective.blocks() == 1) return kMostPartBytes;
  return std::min<uint64_t>(kMostPartBytes, wire::kMaxPayloadBytes / collective.ranks);
}

// Returns whether the receipts to a rank come after those from others: along a tree, so that a root ends only once all
// ranks have begun. In other collectives each rank waits for bytes of all ranks; and ranks in a circle would wait for
// each other's receipts.
bool has_late_receipts(const collective::Schedule& schedule) {
  return collective::has_root(schedule.postcondition) && schedule.chunks_per_block() == 1;
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
          blocks_ * chunks_per_block_, has_late_receipts(schedule)),
      ranks_(group.workers),
      moves_(blocks_),
      sends_(blocks_),
      most_part_bytes_(part_bytes(schedule)) {
  for (uint32_t i = 0; i < group.members.size(); ++i) ranks_[group.members[i]] = i;
  for (uint32_t block = 0; block < schedule.blocks(); ++block) {
    if (schedule.begins_with(rank_, block)) begins_with_.push_back(local_block(block));
    if (schedule.ends_with(rank_, block)) ends_with_.push_back(local_block(block));
  }
  for (const Program::Operation& operation : program_.operations()) {
    for (uint32_t i = 0; i < operation.slice.count && operation.slice.first < chunks(); ++i) {
      const uint32_t block = (operation.slice.first + i) / chunks_per_block_;
      moves_[block] = true;
      if (operation.kind == Program::Kind::kSend) sends_[block] = true;
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

void CallProgram::find_places(uint32_t block, const Layout& layout, MutableBytes output, uint64_t offset,
                              std::span<std::byte*> places) const {
  if (sends(block)) return;
  const collective::Slice chunks = chunks_of(block);
  const uint64_t first = layout.range_of(chunks).first;
  for (uint32_t chunk = chunks.first; chunk < chunks.first + chunks.count; ++chunk) {
    const Layout::Range range = layout.range_of({chunk, 1});
    if (range.count > 0) places[chunk] = output.data() + offset + range.first - first;
  }
}

uint32_t CallPrograms::code_of(Postcondition collective, uint32_t root, uint64_t bytes, uint32_t kind,
                               const Group& group) {
  return static_cast<uint32_t>(collective) | (bytes >= kLargeBytes ? kLargeBit : 0) |
         hash_of(group.members, kind) << kHashShift | root << kRootShift;
}

std::string CallPrograms::describe(uint32_t code) {
  const Postcondition collective = collective_of(code);
  std::string text = absl::StrCat(collective::name_of(collective), " of ",
                                  (code & kLargeBit) != 0 ? "at least" : "less than", " 64 KiB");
  if (collective::has_root(collective)) absl::StrAppend(&text, " with root ", code >> kRootShift);
  return absl::StrCat(text, " (hash of members, type and reduction: ", code >> kHashShift & kHashMask, ")");
}

void CallPrograms::forget(uint32_t number) {
  std::erase_if(programs_, [number](const auto& each) { return each.first.first == number; });
}

absl::StatusOr<const CallProgram*> CallPrograms::find(uint32_t number, const Group& group, uint32_t code) {
  std::unique_ptr<const CallProgram>& program = programs_[{number, code & ~(kHashMask << kHashShift)}];
  if (program == nullptr) {
    collective::Spec spec;
    spec.algorithm = algorithm_of(code, group.members.size());
    const auto schedule = collective::make_schedule(
        spec, {static_cast<uint32_t>(group.members.size()), collective_of(code), code >> kRootShift},
        collective::OnlyRank(group.rank));
    GLN_RETURN_IF_ERROR(schedule.status());
    program = std::make_unique<const CallProgram>(*schedule, group);
  }
  return program.get();
}

}  // namespace gleaner::executor
