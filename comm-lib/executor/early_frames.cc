#include "comm-lib/executor/early_frames.h"

#include <utility>

namespace gleaner::executor {

void EarlyFrames::add(const wire::Header& header, Buffer payload) {
  frames_[{header.tensor, header.step, header.partition}].push_back({header, std::move(payload)});
}

bool EarlyFrames::add_unmade(const wire::Header& header, Buffer payload, uint64_t group_limit) {
  uint64_t& bytes = unmade_bytes_[header.sender];
  const uint64_t more = bytes + bytes_of({header, payload});
  if (more > kMostUnmadeBytes && more / 4 > group_limit) return false;
  bytes = more;
  add(header, std::move(payload));
  return true;
}

void EarlyFrames::on_made(uint32_t subject) {
  for (auto part = frames_.lower_bound({subject, 0, 0}); part != frames_.end() && std::get<0>(part->first) == subject;
       ++part) {
    for (const Frame& frame : part->second) unmade_bytes_[frame.header.sender] -= bytes_of(frame);
  }
}

std::vector<EarlyFrames::Frame> EarlyFrames::take(const Key& part) {
  auto taken = frames_.extract(part);
  return taken.empty() ? std::vector<Frame>() : std::move(taken.mapped());
}

const EarlyFrames::Frame* EarlyFrames::of_call(uint32_t subject, uint64_t number) const {
  const auto part = frames_.lower_bound({subject, number, 0});
  const bool is_found =
      part != frames_.end() && std::get<0>(part->first) == subject && std::get<1>(part->first) == number;
  return is_found ? &part->second.front() : nullptr;
}

const EarlyFrames::Frame* EarlyFrames::of_group(uint32_t subject) const {
  const auto part = frames_.lower_bound({subject, 0, 0});
  return part != frames_.end() && std::get<0>(part->first) == subject ? &part->second.front() : nullptr;
}

void EarlyFrames::clear() {
  frames_.clear();
  unmade_bytes_.clear();
}

}  // namespace gleaner::executor
