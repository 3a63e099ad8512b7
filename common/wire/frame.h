// The frames that worker sessions and summers exchange; docs/protocol.md#frame describes them.
//
// A frame is a Header, little endian, followed by payload_bytes of payload. header_crc is the CRC-32C of the 60 bytes
// before it, and payload_crc that of the payload. Receivers check header_crc before they trust any field but magic and
// version.
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
inline constexpr uint8_t kVersion = 5;
inline constexpr uint32_t kMaxPayloadBytes = uint32_t{4} << 20;
// A frame about a call of a group (comm-lib/executor/calls.h), and not about a tensor, has this bit in its `tensor`;
// the other bits are the number of the group. `partition` is then a part of the call, `step` the number of the call in
// its group, and `schedule` says which collective it is. Its payload is bytes of no type.
inline constexpr uint32_t kCallBit = uint32_t{1} << 31;
inline constexpr DataType kNoType = DataType{};
inline constexpr uint32_t kMaxHandshakePayload = 512;  // of types kHello to kReject, and of kRefuse

enum class FrameType : uint8_t {
  // The handshake (wire/handshake.h), which comes before all other frames.
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kWelcome = 4,
  kReject = 5,  // payload: a message for the log; the connection closes
  // Sums.
  kPush = 16,    // worker to owner: the worker's contribution to a partition at a step
  kResult = 17,  // owner to worker: the result
  kAck = 18,     // worker to owner: the results that the worker has; payload: PartitionKey[]
  // Owner to worker: the owner has no memory for that push now, so the worker sends it again later; no payload.
  kDefer = 19,
  kFetch = 20,  // owner to worker: asks for a result that an earlier owner made and that some worker lacks; no payload
  kHand = 21,   // worker to owner: the result that kFetch asked for
  // Worker to owner: asks which results every worker has; payload: PartitionKey[] of the results that the worker keeps
  // from earlier owners, or none. Owner to worker: every worker has the results numbered below `confirmed`, and those
  // in the payload, which are some of the keys asked about.
  kRelease = 22,
  // Owner to worker: the owner will never accept that frame, so the worker's session ends; payload: a message for the
  // user.
  kRefuse = 23,
  // Owner to worker: the plan of `epoch` is in force at the owner. Sent first on every connection, and when it changes.
  kCommitted = 24,
  // Worker to worker: a slice of a partition, by the schedule of a collective (comm-lib/executor). `sequence` counts
  // the slices to that worker, and `confirmed` those from it that have arrived.
  kSlice = 25,
  // Worker to worker: every slice before `confirmed` has arrived; no payload.
  kArrived = 26,
  // Worker to worker: the sender has begun this step of the partition by this schedule, and waits for a slice of the
  // receiver, which should begin it, too. Confirms slices as a kArrived does; no payload.
  kAwait = 27,
  // Keep-alive. `step` of a kPing is the number of frames, other than handshake and keep-alive, that its sender has
  // sent over this connection. The kPong returns that number, which confirms that those frames have arrived. It also
  // returns the `partition` of the kPing: the number of a kPing whose answer the sender times, or 0.
  kPing = 32,
  kPong = 33,
};

struct Header {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  FrameType type = FrameType::kPing;
  DataType data_type = DataType::kFloat32;  // of the payload of kPush, kResult, kHand and kSlice
  ReduceOp op = ReduceOp::kSum;             // of the same frame types, and of kAwait
  uint64_t job = 0;                         // job_number() of the job's name
  uint32_t epoch = 0;
  uint32_t sender = 0;  // member number
  uint32_t tensor = 0;
  uint32_t partition = 0;  // index within the tensor
  // Number of earlier push_pulls of the tensor that owners sum; in a kSlice or kAwait: that this schedule sums. For
  // kPing and kPong see FrameType.
  uint64_t step = 0;
  // The number of a result among those of its owner, or of a slice among those to this receiver; it may wrap around.
  // Else zero; checked
  uint32_t sequence = 0;
  // The results or slices with lower numbers are confirmed: every worker has those results (kResult, kRelease), or the
  // sender of this frame has those slices of the receiver (kSlice, kArrived, kAwait). Else zero; checked
  uint32_t confirmed = 0;
  uint32_t payload_bytes = 0;
  uint32_t payload_crc = 0;
  // kSlice, kAwait: index in Plan::schedules of the schedule that the frame is about. Else zero; checked
  uint32_t schedule = 0;
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

// Returns the CRC-32C of `bytes`, or of earlier bytes followed by `bytes` if `before` is the checksum of the earlier
// ones.
uint32_t crc32c(ConstBytes bytes, uint32_t before = 0);

// Fills magic, version, payload_bytes, payload_crc and header_crc, the fields that follow from the others. Keeps a
// payload_crc that is not 0, so that the sender of one payload to many peers computes it once.
void seal(Header& header, ConstBytes payload);
// Like seal(), for a payload that needs no checksum, because the network adapters check it or it stays on the host:
// payload_crc becomes 0.
void seal_unchecked(Header& header, size_t payload_bytes);

// Reads a header, and checks magic, version, header_crc, the type, the payload's size for that type, the fields
// that are zero in that type and, in a kPush, kResult or kHand, the data type and op. DataLoss: the checksum is wrong;
// InvalidArgument: another check failed. The message names it. Safe for any `bytes`.
absl::StatusOr<Header> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// Returns DataLoss if the payload does not match the header's payload_bytes or payload_crc.
absl::Status check_payload(const Header& header, ConstBytes payload);
// Returns DataLoss if `crc`, the checksum of a payload of the right size, is not payload_crc.
absl::Status check_payload_crc(const Header& header, uint32_t crc);

// Returns the first 8 bytes of SHA-256 of the job's name. A summer that several jobs share recognizes a job by them.
uint64_t job_number(absl::string_view job);

constexpr bool is_handshake(FrameType type) { return type >= FrameType::kHello && type <= FrameType::kReject; }

// Returns whether frames of this type go between workers that execute schedules (comm-lib/executor).
constexpr bool is_of_schedule(FrameType type) {
  return type == FrameType::kSlice || type == FrameType::kArrived || type == FrameType::kAwait;
}

absl::string_view name_of(FrameType type);

}  // namespace gleaner::wire
