#include "comm-lib/executor/program.h"

#include <algorithm>

namespace gleaner::executor {

Program::Program(const collective::Schedule& schedule, std::span<const uint32_t> ranks, uint32_t worker)
    : chunks_(schedule.chunks), source_of_(schedule.ranks, kNone) {
  std::vector<uint32_t> worker_of(schedule.ranks);
  const auto rank_of = [&](uint32_t of_worker) { return ranks.empty() ? of_worker : ranks[of_worker]; };
  for (uint32_t i = 0; i < schedule.ranks; ++i) worker_of[rank_of(i)] = i;
  const bool gathers = schedule.postcondition == collective::Postcondition::kAllGather;
  for (uint32_t i = 0; gathers && i < schedule.ranks; ++i) blocks_.push_back(rank_of(i));
  std::vector<bool> is_finished(chunks_, gathers);
  for (const collective::Op& op : schedule.programs[rank_of(worker)]) {
    const bool is_result = op.take == collective::Take::kCopy && !gathers;
    if (is_result && op.kind == collective::OpKind::kSend) finish(op.slice, is_finished);
    if (is_result) std::fill_n(is_finished.begin() + op.slice.first, op.slice.count, true);
    const Content content = gathers ? Content::kContributions : is_result ? Content::kResults : Content::kPartialSums;
    add_message(op, content, worker_of[op.peer]);
  }
  finish({0, chunks_}, is_finished);
}

Program::Program(const collective::Schedule& schedule, std::span<const uint32_t> members, uint32_t rank,
                 uint32_t workers, const std::function<uint32_t(uint32_t)>& chunk_of, uint32_t receipts,
                 bool late_receipts)
    : source_of_(workers, kNone) {
  const std::vector<collective::Op>& program = schedule.programs[rank];
  std::vector<bool> receives(schedule.ranks), sends(schedule.ranks);
  for (const collective::Op& op : program) (op.kind == collective::OpKind::kSend ? sends : receives)[op.peer] = true;
  const auto add_receipts = [&](collective::OpKind kind, const std::vector<bool>& peers, uint32_t first) {
    for (uint32_t peer = 0; peer < schedule.ranks; ++peer) {
      if (!peers[peer]) continue;
      add_message({.kind = kind, .slice = {first + peer, 1}}, Content::kContributions, members[peer]);
    }
  };
  if (!late_receipts) add_receipts(collective::OpKind::kSend, receives, receipts);
  for (collective::Op op : program) {
    op.slice.first = chunk_of(op.slice.first);
    add_message(op, Content::kContributions, members[op.peer]);
  }
  add_receipts(collective::OpKind::kReceive, sends, receipts + schedule.ranks);
  if (late_receipts) add_receipts(collective::OpKind::kSend, receives, receipts);
}

void Program::add_message(const collective::Op& op, Content content, uint32_t peer) {
  const auto index = static_cast<uint32_t>(operations_.size());
  Operation& operation = operations_.emplace_back();
  operation.kind = op.kind == collective::OpKind::kSend   ? Kind::kSend
                   : op.take == collective::Take::kReduce ? Kind::kAdd
                                                          : Kind::kCopy;
  operation.content = content;
  operation.peer = peer;
  operation.slice = op.slice;
  operation.step = op.step;
  if (op.kind == collective::OpKind::kSend) return;
  uint32_t& source = source_of_[peer];
  if (source == kNone) {
    source = static_cast<uint32_t>(first_from_.size());
    first_from_.push_back(index);
    last_from_.push_back(index);
  } else {
    operations_[last_from_[source]].next_from = index;
    last_from_[source] = index;
  }
  operation.source = source;
}

// Adds operations that finish the chunks of a slice that are not finished yet.
void Program::finish(const collective::Slice& slice, std::vector<bool>& is_finished) {
  for (uint32_t chunk = slice.first; chunk < slice.first + slice.count; ++chunk) {
    if (is_finished[chunk]) continue;
    const bool extends = chunk > slice.first && !operations_.empty() && operations_.back().kind == Kind::kFinish &&
                         operations_.back().slice.first + operations_.back().slice.count == chunk;
    if (extends) {
      ++operations_.back().slice.count;
    } else {
      Operation& operation = operations_.emplace_back();
      operation.kind = Kind::kFinish;
      operation.content = Content::kResults;
      operation.slice = {chunk, 1};
    }
    is_finished[chunk] = true;
  }
}

uint64_t Program::largest_message(uint64_t elements) const {
  const Layout layout = layout_of(elements);
  uint64_t largest = 0;
  for (const Operation& operation : operations_) {
    if (operation.kind != Kind::kFinish) largest = std::max(largest, layout.range_of(operation.slice).count);
  }
  return largest;
}

}  // namespace gleaner::executor
