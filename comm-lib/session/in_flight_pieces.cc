#include "comm-lib/session/in_flight_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gleaner::session {

void InFlightPieces::open(PieceRequest piece, uint32_t begin, uint32_t end, uint64_t offset,
                          const plan::Encoding& encoding) {
  const uint32_t index = pieces_.take();
  awaiting_release_.reserve(pieces_.size());
  pieces_[index] = {true, begin, end, end - begin, offset, encoding, std::move(piece), {}};
  std::fill(piece_of_.begin() + begin, piece_of_.begin() + end, index);
  ++started_;
  if (begin == end) awaiting_release_.push_back(index);
}

Buffer InFlightPieces::input(uint32_t partition, uint64_t offset, uint64_t bytes) const {
  const PieceState& state = pieces_[piece_of_[partition]];
  return state.piece.input.slice(state.encoding.contribution_bytes(offset - state.offset),
                                 state.encoding.contribution_bytes(bytes));
}

bool InFlightPieces::is_in_place(uint32_t partition) const {
  const PieceRequest& piece = pieces_[piece_of_[partition]].piece;
  return piece.output.data() == piece.input.bytes().data();
}

void InFlightPieces::add_result(uint32_t partition, uint64_t offset, uint64_t bytes, const Buffer& result,
                                bool is_delayed) {
  const uint32_t index = piece_of_[partition];
  PieceState& state = pieces_[index];
  if (is_delayed) {
    state.delayed.push_back({offset - state.offset, result.slice(0, bytes)});
  } else {
    std::memcpy(state.piece.output.data() + (offset - state.offset), result.bytes().data(), bytes);
  }
  if (--state.missing == 0) awaiting_release_.push_back(index);
}

void InFlightPieces::complete(std::vector<Done>& done) {
  std::erase_if(awaiting_release_, [&](uint32_t index) {
    PieceState& state = pieces_[index];
    if (!state.piece.input.sole_owner()) return false;
    for (const DelayedResult& delayed : state.delayed) {
      std::memcpy(state.piece.output.data() + delayed.offset, delayed.result.bytes().data(), delayed.result.size());
    }
    done.push_back({state.piece.id, absl::OkStatus()});
    std::fill(piece_of_.begin() + state.begin, piece_of_.begin() + state.end, kNone);
    state = {};
    pieces_.give_back(index);
    return true;
  });
}

void InFlightPieces::fail(const absl::Status& status, std::vector<Done>& done) {
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].active) continue;
    done.push_back({pieces_[i].piece.id, status});
    pieces_[i] = {};
    pieces_.give_back(i);
  }
  awaiting_release_.clear();
}

}  // namespace gleaner::session
