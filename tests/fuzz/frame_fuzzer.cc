// Bytes from the network: the stream cut into frames, then the handshake on both sides.
#include <algorithm>
#include <cstring>

#include "common/transport/frame_reader.h"
#include "common/wire/handshake.h"

namespace {

using namespace gleaner;  // NOLINT: a fuzzer's own file

struct Jobs : wire::JobSecrets {
  wire::Secret secret{1};
  const wire::Secret* find(uint64_t job) const override { return job % 2 == 0 ? &secret : nullptr; }
};

// Whatever the input, checksums are set right often enough that the fields behind them are reached: the first byte of
// each 65-byte record says whether.
void repair_checksums(MutableBytes input) {
  for (size_t at = 0; at + 65 <= input.size(); at += 65) {
    if ((static_cast<unsigned>(input[at]) & 1) == 0) continue;
    wire::Header header;
    std::memcpy(&header, input.data() + at + 1, sizeof(header));
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.reserved = 0;
    header.reserved2 = 0;
    header.payload_bytes %= 128;
    header.header_crc = wire::crc32c(std::as_bytes(std::span(&header, 1)).first(60));
    std::memcpy(input.data() + at + 1, &header, sizeof(header));
  }
}

void read_stream(ConstBytes input) {
  BufferPool pool;
  transport::FrameReader reader;
  const Jobs jobs;
  wire::ClientHandshake client(2, 1, jobs.secret, wire::Nonce{});
  wire::ServerHandshake server(jobs, wire::Nonce{});
  const auto allocate = [&](const wire::Header& header) -> absl::StatusOr<Buffer> {
    return pool.take(header.payload_bytes);
  };
  while (!input.empty()) {
    size_t taken = 0;
    for (const MutableBytes space : reader.space()) {
      const ConstBytes part = input.first(std::min(space.size(), input.size()));
      std::copy(part.begin(), part.end(), space.begin());
      input = input.subspan(part.size());
      taken += part.size();
    }
    if (taken == 0) __builtin_trap();  // a reader that takes nothing more hangs its connection
    reader.received(taken);
    transport::FrameReader::Frame frame;
    while (true) {
      const auto whole = reader.next(allocate, &frame);
      if (!whole.ok()) return;
      if (!*whole) break;
      client.on_frame(frame.header, frame.payload.bytes()).IgnoreError();
      server.on_frame(frame.header, frame.payload.bytes()).IgnoreError();
      if (server.done()) __builtin_trap();  // nobody proves a secret by chance
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> input(size);
  if (size > 0) std::memcpy(input.data(), data, size);
  repair_checksums(input);
  // Records lie 65 bytes apart; the stream holds their last 64.
  std::vector<std::byte> stream;
  for (size_t at = 0; at < input.size(); at += 65) {
    const size_t end = std::min(at + 65, input.size());
    stream.insert(stream.end(), input.begin() + static_cast<ptrdiff_t>(std::min(at + 1, end)),
                  input.begin() + static_cast<ptrdiff_t>(end));
  }
  read_stream(stream);
  return 0;
}
