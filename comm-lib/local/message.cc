#include "comm-lib/local/message.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gleaner::local {

absl::string_view name_of(MessageType type) {
  switch (type) {
    case MessageType::kHello:
      return "HELLO";
    case MessageType::kWelcome:
      return "WELCOME";
    case MessageType::kSegment:
      return "SEGMENT";
    case MessageType::kReady:
      return "READY";
    case MessageType::kReduce:
      return "REDUCE";
    case MessageType::kReduced:
      return "REDUCED";
    case MessageType::kResult:
      return "RESULT";
    case MessageType::kFail:
      return "FAIL";
    case MessageType::kLeave:
      return "LEAVE";
    case MessageType::kGpu:
      return "GPU";
    case MessageType::kOffer:
      return "OFFER";
    case MessageType::kZone:
      return "ZONE";
    case MessageType::kOpened:
      return "OPENED";
    case MessageType::kUse:
      return "USE";
    case MessageType::kCopy:
      return "COPY";
    case MessageType::kPlaced:
      return "PLACED";
    case MessageType::kGather:
      return "GATHER";
  }
  return "";
}

absl::StatusOr<bool> PacketReader::next(Message& message, ConstBytes& payload) {
  if (rest_.empty()) return false;
  if (rest_.size() < sizeof(Message)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a message of ", sizeof(Message), " bytes, got ", rest_.size()));
  }
  std::memcpy(&message, rest_.data(), sizeof(Message));
  rest_ = rest_.subspan(sizeof(Message));
  if (message.magic != kMagic) {
    return absl::InvalidArgumentError("expected a message between local ranks; the bytes are not one");
  }
  if (message.version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("a process speaks version ", message.version,
                                                   " of the messages between local ranks, expected version ", kVersion,
                                                   "; install the same version of gleaner for all ranks"));
  }
  if (name_of(message.type).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown message type ", static_cast<int>(message.type)));
  }
  if (message.payload_bytes > rest_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("expected ", message.payload_bytes, " bytes of payload after ",
                                                   name_of(message.type), ", got ", rest_.size()));
  }
  payload = rest_.first(message.payload_bytes);
  rest_ = rest_.subspan(message.payload_bytes);
  return true;
}

absl::Status read_payload(ConstBytes payload, void* target, size_t size, MessageType type) {
  if (payload.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", size, " bytes of payload with ", name_of(type), ", got ", payload.size()));
  }
  std::memcpy(target, payload.data(), size);
  return absl::OkStatus();
}

uint8_t code_of(const absl::Status& status) { return static_cast<uint8_t>(status.code()); }

ConstBytes text_of(const absl::Status& status) {
  const absl::string_view text = status.message();
  return std::as_bytes(std::span(text.data(), std::min(text.size(), kMaxText)));
}

absl::Status status_of(const Message& message, ConstBytes payload) {
  if (message.detail == 0) return absl::OkStatus();
  const bool known = message.detail <= static_cast<uint8_t>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(message.detail) : absl::StatusCode::kUnknown,
                      absl::string_view(reinterpret_cast<const char*>(payload.data()), payload.size()));
}

}  // namespace gleaner::local
