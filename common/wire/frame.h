// The frame: what travels between worker sessions and summers. docs/protocol.md is its description; this is its code.
//
// A frame is this header, little endian, then payload_bytes of payload. header_crc covers the 60 bytes before it, and
// is checked before any other field is believed; payload_crc covers the payload. Both are CRC-32C.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace gleaner::wire {

static_assert(std::endian::native == std::endian::little, "frames are little endian and copied as they are");

inline constexpr uint32_t kMagic = 0x314e4c47;  // "GLN1"
inline constexpr uint8_t kVersion = 2;
inline constexpr uint32_t kMaxPayloadBytes = uint32_t{4} << 20;
inline constexpr uint32_t kMaxHandshakePayload = 512;  // of kHello to kReject, and of kRefuse

enum class FrameType : uint8_t {
  // Connection: hello, challenge, proof, welcome (wire/handshake.h), then everything else.
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kWelcome = 4,
  kReject = 5,  // payload: a message for people; the connection closes
  // Sums.
  kPush = 16,    // worker to owner: one worker's part of a partition at a step
  kResult = 17,  // owner to worker: the sum
  kAck = 18,     // worker to owner: how far it is with partitions; payload: PartitionKey[]
  kDefer = 19,   // owner to worker: no memory for that push now, send it again later; no payload
  kFetch = 20,   // owner to worker: a result that an earlier owner made and some worker lacks is wanted; no payload
  kHand = 21,    // worker to owner: that result
  // Worker to owner: which results does every worker have? payload: PartitionKey[] of what it keeps from earlier
  // owners, or none. Owner to worker: those numbered below `released`, and of these keys those in the payload.
  kRelease = 22,
  // Owner to worker: it will never take that frame, so that worker's session is over; payload: a message for people.
  kRefuse = 23,
  // Owner to worker: the plan of `epoch` is in force here. When that changes, and first on every connection.
  kCommitted = 24,
  // Liveness. `step` of a kPing is the number of frames of sums that its sender sent before it over this connection.
  // The kPong returns that number, and so says that these frames have arrived.
  kPing = 32,
  kPong = 33,
};

struct Header {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  FrameType type = FrameType::kPing;
  DataType data_type = DataType::kFloat32;  // kPush, kResult, kHand
  ReduceOp op = ReduceOp::kSum;             // the same
  uint64_t job = 0;                         // job_number() of the job's name
  uint32_t epoch = 0;
  uint32_t sender = 0;  // member index
  uint32_t tensor = 0;
  uint32_t partition = 0;  // index within the tensor
  uint64_t step = 0;       // how many push_pulls of this tensor came before; kPing, kPong: see there
  uint32_t sequence = 0;   // kResult: of its owner's results; they may wrap around. Else zero; checked
  uint32_t released = 0;   // kResult, kRelease: every worker has those before this one. Else zero; checked
  uint32_t payload_bytes = 0;
  uint32_t payload_crc = 0;
  uint32_t reserved = 0;  // zero; checked
  uint32_t header_crc = 0;
};
static_assert(sizeof(Header) == 64);
static_assert(std::has_unique_object_representations_v<Header>);

// One entry of a kAck payload: the worker has all results of this partition before `step`.
struct PartitionKey {
  uint64_t step = 0;
  uint32_t tensor = 0;
  uint32_t partition = 0;
  friend bool operator==(const PartitionKey&, const PartitionKey&) = default;
};
static_assert(sizeof(PartitionKey) == 16);

inline constexpr size_t kHeaderBytes = sizeof(Header);

// Of `bytes`, or of them behind others whose checksum is `before`.
uint32_t crc32c(ConstBytes bytes, uint32_t before = 0);

// Fills magic, version, payload_bytes, payload_crc and header_crc, the fields that follow from the others. A
// payload_crc that is not 0 is believed: who sends one payload to many computes it once.
void seal(Header& header, ConstBytes payload);
// The same for a payload that the way there checks itself, or that does not leave the host: its payload_crc is 0.
void seal_unchecked(Header& header, size_t payload_bytes);

// Checks magic, version, header_crc, known type, payload size for the type, reserved fields; InvalidArgument (DataLoss
// for the checksum) says what is wrong. A kPush, kResult or kHand also has a valid data type and op. Nothing in `bytes`
// is trusted; never reads past kHeaderBytes.
absl::StatusOr<Header> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// DataLoss when the payload does not match the header's payload_crc.
absl::Status check_payload(const Header& header, ConstBytes payload);
// The same for a payload of the right size whose checksum is `crc`.
absl::Status check_payload_crc(const Header& header, uint32_t crc);

// First 8 bytes of SHA-256 of the job's name: keeps jobs on a shared summer apart.
uint64_t job_number(absl::string_view job);

constexpr bool is_handshake(FrameType type) { return type >= FrameType::kHello && type <= FrameType::kReject; }

absl::string_view name_of(FrameType type);

}  // namespace gleaner::wire
