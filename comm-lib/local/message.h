// The messages between the leader and the other local ranks of a worker (docs/local-ranks.md). They stay on one machine
// and have its byte order. A packet of the socket has one or more messages, each followed by its payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"

namespace gleaner::local {

// F: from another local rank to the leader. L: from the leader to another local rank.
enum class MessageType : uint8_t {
  kHello = 1,    // F: payload HelloPayload
  kWelcome = 2,  // L: all ranks are connected; payload: proof, a Digest
  kSegment = 3,  // L: memory of `step` tensors from `tensor` on; payload SegmentPayload; the file is attached
  kReady = 4,    // F: this rank's input is in its slot, or, by_gpu, in the zones; detail: ReduceOp
  kReduce = 5,   // L: all ranks are ready, by_gpu as they are: sum your slice
  kReduced = 6,  // F: this rank's slice is summed
  kResult = 7,  // L: the push_pull has ended; detail: status code, payload: message; 0: the result is in shared memory,
                // by_gpu: place your slice of it in your zone
  kFail = 8,    // both: the group has failed; detail: status code, payload: message
  kLeave = 9,   // both: the sender leaves, with nothing in flight
  kGpu = 10,    // F: this rank's tensors are on a GPU; detail: 1 if it can sum there
  kOffer = 11,  // L: all ranks can sum on their GPUs: offer a zone for each batch of tensors
  kZone = 12,   // both: the zone of rank `detail` for the tensors from `tensor` on; payload: device::SharedMemory
  kOpened = 13,  // F: the zones for the tensors from `tensor` on are open; detail: status code, payload: message
  kUse = 14,     // L: copy these tensors into the zones from now on
  kCopy = 15,    // L: other ranks are ready on the host: copy this tensor into your slot
  kPlaced = 16,  // F: this rank's slice of the result is in its zone
  kGather = 17,  // L: all slices of the result are in their zones
};

inline constexpr uint32_t kMagic = 0x4C4E4C47;  // "GLNL"
inline constexpr uint8_t kVersion = 3;

struct Message {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  MessageType type{};
  uint8_t detail = 0;
  uint8_t by_gpu = 0;
  uint32_t tensor = 0;
  uint32_t payload_bytes = 0;
  uint64_t step = 0;  // number of push_pulls of the tensor before this one
};
static_assert(sizeof(Message) == 24 && std::is_trivially_copyable_v<Message>);

inline Message message_about(MessageType type, uint32_t tensor, uint64_t step) {
  Message message;
  message.type = type;
  message.tensor = tensor;
  message.step = step;
  return message;
}

using Digest = std::array<uint8_t, 32>;

struct HelloPayload {
  uint64_t job = 0;
  uint32_t worker = 0;
  uint32_t local_rank = 0;
  uint32_t local_size = 0;
  uint32_t reserved = 0;
  Digest proof{};
};
static_assert(sizeof(HelloPayload) == 56 && std::is_trivially_copyable_v<HelloPayload>);

struct SegmentPayload {
  uint64_t bytes = 0;
  Digest digest{};  // Layout::digest
};
static_assert(sizeof(SegmentPayload) == 40 && std::is_trivially_copyable_v<SegmentPayload>);

inline constexpr size_t kMaxText = 400;  // of a status message
inline constexpr size_t kMaxPayload = kMaxText;
inline constexpr size_t kMaxPacket = 4096;

absl::string_view name_of(MessageType type);

// Reads the messages of a packet.
class PacketReader {
 public:
  explicit PacketReader(ConstBytes packet) : rest_(packet) {}

  // Reads the next message. Returns false at the end of the packet. `payload` points into the packet. InvalidArgument:
  // the bytes are not a message between local ranks, or the message has another version.
  absl::StatusOr<bool> next(Message& message, ConstBytes& payload);

 private:
  ConstBytes rest_;
};

// Copies a payload into a T. InvalidArgument if the payload has another size.
absl::Status read_payload(ConstBytes payload, void* target, size_t size, MessageType type);
template <typename T>
absl::Status read_payload(ConstBytes payload, T& target, MessageType type) {
  static_assert(std::is_trivially_copyable_v<T>);
  return read_payload(payload, &target, sizeof(T), type);
}

// Convert a status to `detail` and payload, and back. The message is cut to kMaxText. An unknown code becomes kUnknown.
uint8_t code_of(const absl::Status& status);
ConstBytes text_of(const absl::Status& status);
absl::Status status_of(const Message& message, ConstBytes payload);

template <typename T>
ConstBytes payload_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace gleaner::local
