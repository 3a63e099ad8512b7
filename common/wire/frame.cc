#include "common/wire/frame.h"

#include <isa-l/crc.h>
#include <openssl/sha.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace gleaner::wire {
namespace {

constexpr size_t kCheckedHeaderBytes = kHeaderBytes - sizeof(Header::header_crc);

uint32_t header_crc_of(const Header& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(kCheckedHeaderBytes));
}

bool carries_numbers(FrameType type) {
  return type == FrameType::kPush || type == FrameType::kResult || type == FrameType::kHand ||
         type == FrameType::kSlice || type == FrameType::kAwait;
}

bool has_no_payload(FrameType type) {
  return type == FrameType::kPing || type == FrameType::kPong || type == FrameType::kDefer ||
         type == FrameType::kFetch || type == FrameType::kCommitted || type == FrameType::kArrived ||
         type == FrameType::kAwait;
}

uint32_t most_payload(FrameType type) {
  if (is_handshake(type) || type == FrameType::kRefuse) return kMaxHandshakePayload;
  if (has_no_payload(type)) return 0;
  return kMaxPayloadBytes;
}

absl::Status check_fields(const Header& header) {
  if (name_of(header.type) == "unknown") {
    return absl::InvalidArgumentError(absl::StrCat("frame of unknown type ", static_cast<int>(header.type)));
  }
  if (header.payload_bytes > most_payload(header.type)) {
    return absl::InvalidArgumentError(absl::StrCat(name_of(header.type), " frame with ", header.payload_bytes,
                                                   " bytes of payload; expected at most ", most_payload(header.type)));
  }
  const bool is_numbered = header.type == FrameType::kResult || header.type == FrameType::kSlice;
  const bool may_confirm = is_numbered || header.type == FrameType::kRelease || is_of_schedule(header.type);
  const bool has_schedule = header.type == FrameType::kSlice || header.type == FrameType::kAwait;
  if ((!has_schedule && header.schedule != 0) || (!is_numbered && header.sequence != 0) ||
      (!may_confirm && header.confirmed != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_of(header.type), " frame with fields that are not zero, but zero in that type"));
  }
  const bool has_type = is_valid(header.data_type) || (header.type == FrameType::kSlice &&
                                                       header.data_type == kNoType && (header.tensor & kCallBit) != 0);
  if (carries_numbers(header.type) && (!has_type || !is_valid(header.op))) {
    return absl::InvalidArgumentError(absl::StrCat(name_of(header.type), " frame with data type ",
                                                   static_cast<int>(header.data_type), " and op ",
                                                   static_cast<int>(header.op)));
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t crc32c(ConstBytes bytes, uint32_t before) {
  // ISA-L takes a mutable pointer and does neither the initial nor the final inversion of CRC-32C.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  return ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~before);
}

void seal(Header& header, ConstBytes payload) {
  header.magic = kMagic;
  header.version = kVersion;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  if (header.payload_crc == 0 || payload.empty()) header.payload_crc = crc32c(payload);  // 0 if the payload is empty
  header.header_crc = header_crc_of(header);
}

void seal_unchecked(Header& header, size_t payload_bytes) {
  header.magic = kMagic;
  header.version = kVersion;
  header.payload_bytes = static_cast<uint32_t>(payload_bytes);
  header.payload_crc = 0;
  header.header_crc = header_crc_of(header);
}

absl::StatusOr<Header> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), kHeaderBytes);
  if (header.magic != kMagic) {
    return absl::InvalidArgumentError("not a Gleaner frame: the peer speaks another protocol");
  }
  if (header.version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the peer speaks protocol version ",
                                                   static_cast<int>(header.version), ", this side version ",
                                                   static_cast<int>(kVersion), ": run the same release everywhere"));
  }
  if (header.header_crc != header_crc_of(header)) return absl::DataLossError("frame header with a wrong checksum");
  if (const absl::Status status = check_fields(header); !status.ok()) return status;
  return header;
}

absl::Status check_payload(const Header& header, ConstBytes payload) {
  if (payload.size() != header.payload_bytes) {
    return absl::DataLossError(absl::StrCat(name_of(header.type), " frame with ", payload.size(),
                                            " bytes of payload, but its header says ", header.payload_bytes));
  }
  return check_payload_crc(header, crc32c(payload));
}

absl::Status check_payload_crc(const Header& header, uint32_t crc) {
  if (crc == header.payload_crc) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(name_of(header.type), " frame whose payload does not match its checksum"));
}

uint64_t job_number(absl::string_view job) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(job.data()), job.size(), digest);
  uint64_t number = 0;
  std::memcpy(&number, digest, sizeof(number));
  return number;
}

absl::string_view name_of(FrameType type) {
  switch (type) {
    case FrameType::kHello:
      return "HELLO";
    case FrameType::kChallenge:
      return "CHALLENGE";
    case FrameType::kProof:
      return "PROOF";
    case FrameType::kWelcome:
      return "WELCOME";
    case FrameType::kReject:
      return "REJECT";
    case FrameType::kPush:
      return "PUSH";
    case FrameType::kResult:
      return "RESULT";
    case FrameType::kAck:
      return "ACK";
    case FrameType::kDefer:
      return "DEFER";
    case FrameType::kFetch:
      return "FETCH";
    case FrameType::kSlice:
      return "SLICE";
    case FrameType::kArrived:
      return "ARRIVED";
    case FrameType::kAwait:
      return "AWAIT";
    case FrameType::kHand:
      return "HAND";
    case FrameType::kRelease:
      return "RELEASE";
    case FrameType::kRefuse:
      return "REFUSE";
    case FrameType::kCommitted:
      return "COMMITTED";
    case FrameType::kPing:
      return "PING";
    case FrameType::kPong:
      return "PONG";
  }
  return "unknown";
}

}  // namespace gleaner::wire
