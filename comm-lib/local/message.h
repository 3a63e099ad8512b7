// The messages between the leader and the other local ranks of a worker (docs/local-ranks.md), on one machine and in
// its byte order. A packet of the socket holds one or more messages, each followed by its payload.
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

// F: from another local rank to the leader; L: from the leader.
enum class MessageType : uint8_t {
  kHello = 1,    // F: payload Hello
  kWelcome = 2,  // L: all are there; payload Proof
  kSegment = 3,  // L: tensors `tensor` ... tensor + step - 1 lie in the memory file that comes along; payload Segment
  kReady = 4,    // F: my input is in its slot; detail: ReduceOp
  kReduce = 5,   // L: all are ready, sum your slice
  kReduced = 6,  // F: done
  kResult = 7,   // L: the result is in the sum region, or detail: status code and payload: its message
  kFail = 8,     // both: the group is dead; detail: status code, payload: message
  kLeave = 9,    // both: I leave, with nothing in flight
};

inline constexpr uint32_t kMagic = 0x4C4E4C47;  // "GLNL"
inline constexpr uint8_t kVersion = 1;

struct Message {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  MessageType type{};
  uint8_t detail = 0;
  uint8_t reserved = 0;
  uint32_t tensor = 0;
  uint32_t payload_bytes = 0;
  uint64_t step = 0;  // of the tensor: how many push_pulls of it came before
};
static_assert(sizeof(Message) == 24 && std::is_trivially_copyable_v<Message>);

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
  Digest digest{};  // of the tensors' shapes
};
static_assert(sizeof(SegmentPayload) == 40 && std::is_trivially_copyable_v<SegmentPayload>);

inline constexpr size_t kMaxText = 400;  // of a status
inline constexpr size_t kMaxPayload = kMaxText;
inline constexpr size_t kMaxPacket = 4096;

absl::string_view name_of(MessageType type);

// Takes a packet apart.
class PacketReader {
 public:
  explicit PacketReader(ConstBytes packet) : rest_(packet) {}

  // False at the end. InvalidArgument: no message of ours, or another version. `payload` lies in the packet.
  absl::StatusOr<bool> next(Message& message, ConstBytes& payload);

 private:
  ConstBytes rest_;
};

// The payload as a T. InvalidArgument when it has another size.
absl::Status read_payload(ConstBytes payload, void* target, size_t size, MessageType type);
template <typename T>
absl::Status read_payload(ConstBytes payload, T& target, MessageType type) {
  static_assert(std::is_trivially_copyable_v<T>);
  return read_payload(payload, &target, sizeof(T), type);
}

// A status as detail and payload, and back. The message is cut to kMaxText. An unknown code reads as Unknown.
uint8_t code_of(const absl::Status& status);
ConstBytes text_of(const absl::Status& status);
absl::Status status_of(const Message& message, ConstBytes payload);

template <typename T>
ConstBytes payload_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace gleaner::local
