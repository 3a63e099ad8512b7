// Tests that recordings can be sent in pieces and put together again.
#include "common/member/trace_messages.h"

#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

trace::Recording recording_of(size_t events) {
  trace::Recording recording;
  for (size_t i = 0; i < events; ++i) {
    const auto n = static_cast<int64_t>(i);
    recording.events.push_back({1'000'000'000'000 + n * 1000 - (n % 3) * 5000, i, static_cast<uint32_t>(i % 7), 3, 4096,
                                65535, static_cast<trace::Kind>(1 + i % trace::kLastKind)});
    if (!trace::is_of_schedule(recording.events.back().kind)) continue;
    recording.events.back().schedule = plan::kMaxSchedules - 1;
    recording.events.back().schedule_step = static_cast<uint32_t>(i);
    recording.events.back().chunk = 70'000;
  }
  recording.dropped = 5;
  return recording;
}

TEST(TraceMessages, RecordingsArriveAsTheyWere) {
  for (const size_t events : {size_t{0}, size_t{1}, size_t{16384}, size_t{40000}}) {
    const trace::Recording sent = recording_of(events);
    const std::vector<v1::Traced> pieces = encode(7, sent);
    EXPECT_EQ(pieces.size(), std::max<size_t>(1, (events + 16383) / 16384));
    trace::Recording received;
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(pieces[i].recording(), 7u);
      EXPECT_EQ(pieces[i].last(), i + 1 == pieces.size());
      ASSERT_EQ(append(pieces[i], received), absl::OkStatus());
    }
    EXPECT_EQ(received.events, sent.events);
    EXPECT_EQ(received.dropped, sent.dropped);
  }
}

TEST(TraceMessages, MalformedPiecesAreRefused) {
  v1::Traced piece = encode(1, recording_of(3))[0];
  trace::Recording received;
  v1::Traced shorter = piece;
  shorter.mutable_peers()->RemoveLast();
  EXPECT_TRUE(absl::IsInvalidArgument(append(shorter, received)));
  v1::Traced stranger = piece;
  stranger.set_peers(1, plan::kMaxMembers);
  EXPECT_TRUE(absl::IsInvalidArgument(append(stranger, received)));
  const v1::Traced slices = encode(1, recording_of(trace::kLastKind))[0];
  v1::Traced fewer = slices;
  fewer.mutable_chunks()->RemoveLast();
  EXPECT_TRUE(absl::IsInvalidArgument(append(fewer, received)));
  v1::Traced unknown = slices;
  unknown.set_schedules(trace::kLastKind - 1, plan::kMaxSchedules);
  EXPECT_TRUE(absl::IsInvalidArgument(append(unknown, received)));
}

TEST(TraceMessages, ReadsPiecesWithoutSchedules) {
  const v1::Traced piece = encode(1, recording_of(3))[0];
  EXPECT_EQ(piece.schedules_size(), 0) << "a piece without slices is as earlier versions make it";
  trace::Recording received;
  ASSERT_EQ(append(piece, received), absl::OkStatus());
  EXPECT_EQ(received.events, recording_of(3).events);
}

TEST(TraceMessages, KindsOfLaterVersionsAreSkipped) {
  v1::Traced piece = encode(1, recording_of(3))[0];
  piece.set_kinds(1, trace::kLastKind + 1);
  trace::Recording received;
  ASSERT_EQ(append(piece, received), absl::OkStatus());
  EXPECT_EQ(received.events.size(), 2u);
  EXPECT_EQ(received.events[1], recording_of(3).events[2]);
}

}  // namespace
}  // namespace gleaner::member
