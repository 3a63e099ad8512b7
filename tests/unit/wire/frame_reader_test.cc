#include "common/transport/stream/frame_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace gleaner::transport::stream {
namespace {

// Returns a stream of frames with payloads of these sizes. Byte i of the payload of frame f is f + i.
std::vector<std::byte> stream_of(const std::vector<size_t>& sizes) {
  std::vector<std::byte> stream;
  for (size_t f = 0; f < sizes.size(); ++f) {
    std::vector<std::byte> payload(sizes[f]);
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(f + i);
    wire::Header header;
    header.type = wire::FrameType::kPush;
    header.step = f;
    wire::seal(header, payload);
    const auto bytes = std::as_bytes(std::span(&header, 1));
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    stream.insert(stream.end(), payload.begin(), payload.end());
  }
  return stream;
}

// Passes as much of `bytes` as the reader takes at once, and returns that number. Adds to `straight` the bytes that
// went directly into a payload.
size_t receive(FrameReader& reader, ConstBytes bytes, size_t* straight = nullptr) {
  size_t taken = 0;
  const std::array<MutableBytes, 2> places = reader.space();
  for (const MutableBytes space : places) {
    const size_t part = std::min(space.size(), bytes.size() - taken);
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(taken), part, space.begin());
    taken += part;
  }
  if (straight != nullptr) *straight += std::min(taken, places[0].size());
  reader.received(taken);
  return taken;
}

FrameReader::Allocate allocate_from(BufferPool& pool) {
  return [&pool](const wire::Header& header) -> absl::StatusOr<Buffer> { return pool.take(header.payload_bytes); };
}

TEST(FrameReader, FramesDoNotDependOnTheChunksOfTheStream) {
  const std::vector<size_t> sizes = {0, 1, 100, 8191, 8192, 65'536, 200'000, 0, 3};
  const std::vector<std::byte> stream = stream_of(sizes);
  for (const size_t most : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}, size_t{70'000}, stream.size()}) {
    BufferPool pool;
    FrameReader reader;
    FrameReader::Frame frame;
    const FrameReader::Allocate allocate = allocate_from(pool);
    size_t frames = 0;
    std::mt19937 random(static_cast<unsigned>(most));
    for (size_t at = 0; at < stream.size();) {
      const size_t bytes =
          receive(reader, ConstBytes(stream).subspan(at).first(std::min(1 + random() % most, stream.size() - at)));
      ASSERT_GT(bytes, 0u);
      at += bytes;
      while (true) {
        const auto whole = reader.next(allocate, &frame);
        ASSERT_TRUE(whole.ok()) << whole.status();
        if (!*whole) break;
        ASSERT_EQ(frame.header.step, frames);
        ASSERT_EQ(frame.payload.size(), sizes[frames]);
        for (size_t i = 0; i < frame.payload.size(); ++i) {
          ASSERT_EQ(frame.payload.bytes()[i], static_cast<std::byte>(frames + i));
        }
        ++frames;
      }
    }
    EXPECT_EQ(frames, sizes.size()) << "pieces of at most " << most;
  }
}

// Returns how many bytes of a stream were read directly into payloads. The others are copied from the staging area.
size_t read_straight(const std::vector<size_t>& sizes) {
  const std::vector<std::byte> stream = stream_of(sizes);
  BufferPool pool;
  FrameReader reader;
  FrameReader::Frame frame;
  const FrameReader::Allocate allocate = allocate_from(pool);
  size_t straight = 0;
  for (size_t at = 0; at < stream.size();) {
    at += receive(reader, ConstBytes(stream).subspan(at), &straight);
    for (absl::StatusOr<bool> whole = true; *whole; whole = reader.next(allocate, &frame)) {
    }
  }
  return straight;
}

TEST(FrameReader, LargePayloadsAmongSmallFramesAreNotCopied) {
  constexpr size_t kLarge = 33'000;
  std::vector<size_t> sizes;
  for (int i = 0; i < 100; ++i) sizes.insert(sizes.end(), {24, kLarge});
  EXPECT_GT(read_straight(sizes), 90 * kLarge);
}

TEST(FrameReader, OneReadReturnsManySmallFrames) {
  EXPECT_EQ(read_straight(std::vector<size_t>(1000, 100)), 0u);
  std::vector<size_t> after_large(1000, 100);
  after_large.front() = 100'000;
  EXPECT_LE(read_straight(after_large), 100'000u);
}

TEST(FrameReader, ReportsTheBytesThatItWaitsFor) {
  const std::vector<std::byte> stream = stream_of({50'000, 10});
  BufferPool pool;
  FrameReader reader;
  FrameReader::Frame frame;
  const FrameReader::Allocate allocate = allocate_from(pool);
  EXPECT_EQ(reader.awaited(), wire::kHeaderBytes);
  size_t at = receive(reader, ConstBytes(stream).first(wire::kHeaderBytes + 1));
  ASSERT_FALSE(*reader.next(allocate, &frame));
  EXPECT_EQ(reader.awaited(), 49'999u);
  while (!*reader.next(allocate, &frame)) at += receive(reader, ConstBytes(stream).subspan(at));
  EXPECT_EQ(frame.payload.size(), 50'000u);
}

TEST(FrameReader, ADamagedPayloadEndsTheStream) {
  std::vector<std::byte> stream = stream_of({1000});
  stream.back() ^= std::byte{1};
  BufferPool pool;
  FrameReader reader;
  FrameReader::Frame frame;
  ASSERT_EQ(receive(reader, stream), stream.size());
  const auto whole = reader.next(allocate_from(pool), &frame);
  EXPECT_TRUE(absl::IsDataLoss(whole.status())) << whole.status();
}

}  // namespace
}  // namespace gleaner::transport::stream
