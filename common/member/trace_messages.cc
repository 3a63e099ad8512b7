#include "common/member/trace_messages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gleaner::member {
namespace {

constexpr size_t kPieceEvents = 16384;

v1::Traced encode_piece(std::span<const trace::Event> events) {
  v1::Traced piece;
  const bool has_slices =
      std::ranges::any_of(events, [](const trace::Event& event) { return trace::is_of_schedule(event.kind); });
  int64_t before = 0;
  for (const trace::Event& event : events) {
    piece.add_nanoseconds(event.nanoseconds - before);
    before = event.nanoseconds;
    piece.add_kinds(static_cast<uint32_t>(event.kind));
    piece.add_steps(event.step);
    piece.add_tensors(event.tensor);
    piece.add_partitions(event.partition);
    piece.add_peers(event.peer);
    piece.add_bytes(event.bytes);
    if (!has_slices) continue;
    piece.add_schedules(event.schedule);
    piece.add_schedule_steps(event.schedule_step);
    piece.add_chunks(event.chunk);
  }
  return piece;
}

}  // namespace

std::vector<v1::Traced> encode(uint64_t recording, const trace::Recording& contents) {
  std::vector<v1::Traced> pieces;
  for (size_t first = 0; first < contents.events.size(); first += kPieceEvents) {
    const size_t size = std::min(kPieceEvents, contents.events.size() - first);
    pieces.push_back(encode_piece(std::span(contents.events).subspan(first, size)));
  }
  if (pieces.empty()) pieces.emplace_back();
  for (v1::Traced& piece : pieces) piece.set_recording(recording);
  pieces.back().set_dropped(contents.dropped);
  pieces.back().set_last(true);
  return pieces;
}

absl::Status append(const v1::Traced& piece, trace::Recording& contents) {
  const int count = piece.nanoseconds_size();
  const int slices = piece.schedules_size();
  if (piece.kinds_size() != count || piece.steps_size() != count || piece.tensors_size() != count ||
      piece.partitions_size() != count || piece.peers_size() != count || piece.bytes_size() != count ||
      (slices != count && slices != 0) || piece.schedule_steps_size() != slices || piece.chunks_size() != slices) {
    return absl::InvalidArgumentError("the lists of a piece of a trace differ in length");
  }
  uint64_t now = 0;  // unsigned, since a malformed piece may make it wrap
  for (int i = 0; i < count; ++i) {
    now += static_cast<uint64_t>(piece.nanoseconds(i));
    if (piece.kinds(i) > trace::kLastKind) continue;  // an event of a later version
    if (piece.kinds(i) == 0 || piece.peers(i) >= plan::kMaxMembers) {
      return absl::InvalidArgumentError(
          absl::StrCat("a trace event of kind ", piece.kinds(i), " with member ", piece.peers(i)));
    }
    if (slices > 0 && piece.schedules(i) >= plan::kMaxSchedules) {
      return absl::InvalidArgumentError(
          absl::StrCat("a trace event of schedule ", piece.schedules(i), "; a plan has at most ", plan::kMaxSchedules));
    }
    trace::Event& event = contents.events.emplace_back(
        trace::Event{static_cast<int64_t>(now), piece.steps(i), piece.tensors(i), piece.partitions(i), piece.bytes(i),
                     static_cast<uint16_t>(piece.peers(i)), static_cast<trace::Kind>(piece.kinds(i))});
    if (slices == 0) continue;
    event.schedule = static_cast<uint8_t>(piece.schedules(i));
    event.schedule_step = piece.schedule_steps(i);
    event.chunk = piece.chunks(i);
  }
  contents.dropped += piece.dropped();
  return absl::OkStatus();
}

}  // namespace gleaner::member
