// Fuzzes bytes from the network: a FrameReader cuts the stream into frames, which both sides of the handshake receive.
//
// The input is a list of records, each with flags, payload size, header and payload. The flags tell whether a record is
// sent unchanged or with correct checksums, so that the fuzzer also reaches the code behind these checks.
#include <algorithm>
#include <cstring>
#include <vector>

#include "common/transport/stream/frame_reader.h"
#include "common/wire/handshake.h"

namespace {

using gleaner::Buffer;
using gleaner::BufferPool;
using gleaner::ConstBytes;
using gleaner::MutableBytes;
using gleaner::transport::stream::FrameReader;
namespace wire = gleaner::wire;

struct Jobs : wire::JobSecrets {
  wire::Secret secret{1};
  const wire::Secret* find(uint64_t job) const override { return job % 2 == 0 ? &secret : nullptr; }
};

ConstBytes take(ConstBytes& input, size_t bytes) {
  const ConstBytes taken = input.first(std::min(bytes, input.size()));
  input = input.subspan(taken.size());
  return taken;
}

std::vector<std::byte> make_stream(ConstBytes input) {
  std::vector<std::byte> stream;
  while (input.size() > 2) {
    const auto how = static_cast<unsigned>(take(input, 1)[0]);
    const auto scale = static_cast<size_t>(take(input, 1)[0]);
    const ConstBytes raw = take(input, wire::kHeaderBytes);
    std::vector<std::byte> payload(how & 2 ? scale << 9 : scale);  // zeros behind the first 256 bytes
    const ConstBytes given = take(input, std::min(payload.size(), size_t{256}));
    std::copy(given.begin(), given.end(), payload.begin());
    wire::Header header;
    std::memcpy(&header, raw.data(), raw.size());
    if (how & 1) {
      header.schedule = 0;
      if (header.type != wire::FrameType::kResult) header.sequence = 0;
      if (header.type != wire::FrameType::kResult && header.type != wire::FrameType::kRelease) header.confirmed = 0;
      wire::seal(header, payload);
    }
    const auto bytes = std::as_bytes(std::span(&header, 1));
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    stream.insert(stream.end(), payload.begin(), payload.end());
  }
  return stream;
}

// Passes up to `most` bytes to the reader. Returns the number of bytes that the reader took.
size_t receive(FrameReader& reader, ConstBytes stream, size_t most) {
  stream = stream.first(std::min(most, stream.size()));
  size_t taken = 0;
  for (const MutableBytes space : reader.space()) {
    const ConstBytes part = take(stream, space.size());
    std::copy(part.begin(), part.end(), space.begin());
    taken += part.size();
  }
  reader.received(taken);
  return taken;
}

void read_stream(ConstBytes stream, size_t most) {
  BufferPool pool;
  FrameReader reader;
  const Jobs jobs;
  wire::ClientHandshake client(2, 1, jobs.secret, wire::Nonce{});
  wire::ServerHandshake server(jobs, wire::Nonce{});
  const auto allocate = [&](const wire::Header& header) -> absl::StatusOr<Buffer> {
    return pool.take(header.payload_bytes);
  };
  while (!stream.empty()) {
    const size_t taken = receive(reader, stream, most);
    if (taken == 0) __builtin_trap();  // a reader that takes no more bytes would block its connection for ever
    stream = stream.subspan(taken);
    FrameReader::Frame frame;
    while (true) {
      const auto whole = reader.next(allocate, &frame);
      if (!whole.ok()) return;
      if (!*whole) break;
      if (frame.payload.size() != frame.header.payload_bytes) __builtin_trap();
      client.on_frame(frame.header, frame.payload.bytes()).IgnoreError();
      server.on_frame(frame.header, frame.payload.bytes()).IgnoreError();
      if (client.done() || server.done()) __builtin_trap();  // random bytes must not prove a secret
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ConstBytes input = std::as_bytes(std::span(data, size));
  read_stream(make_stream(input.subspan(1)), 1 + static_cast<size_t>(data[0]) * 37);
  return 0;
}
