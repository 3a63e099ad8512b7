// The packets of a measurement of latency: a question, and the answer to it, over UDP. docs/agent.md has the format.
//
// Both have the same size, so nobody can use an agent to send more to a victim than he sends himself. A proof by the
// agents' secret covers the whole packet. An answer repeats the nonce of its question, so that only an answer to the
// question in flight counts. An agent keeps no state of the questions that it answers, so a replayed question has no
// effect but one more answer.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace gleaner::probe {

static_assert(std::endian::native == std::endian::little, "packets are little endian and copied as they are");

enum class PacketKind : uint8_t { kQuestion = 1, kAnswer = 2 };

using PacketNonce = std::array<uint8_t, 16>;

// The bytes on the wire are those of the struct.
struct LatencyPacket {
  std::array<char, 4> magic = {'G', 'L', 'N', 'L'};
  uint8_t version = 1;
  PacketKind kind = PacketKind::kQuestion;
  std::array<uint8_t, 2> reserved = {};
  uint16_t sequence = 0;          // of the question in its measurement, from 0
  uint16_t round = 0;             // the lower bits of the round's number
  uint32_t held_nanoseconds = 0;  // from the arrival of the question to the answer; 0 in a question
  PacketNonce nonce = {};
  std::array<char, 256> node = {};  // name of the answering node, and zeros; all zeros in a question
  std::array<uint8_t, 16> proof = {};
};
static_assert(sizeof(LatencyPacket) == 304 && std::has_unique_object_representations_v<LatencyPacket>);

LatencyPacket make_question(uint16_t sequence, uint16_t round, const PacketNonce& nonce, const std::string& secret);

// Returns the answer to a question that arrived `held` ago. `node` is a valid name.
LatencyPacket make_answer(const LatencyPacket& question, absl::string_view node, absl::Duration held,
                          const std::string& secret);

// Returns the packet of these bytes; nullopt if it has no valid proof, is of another version, or has a wrong field.
std::optional<LatencyPacket> read_packet(ConstBytes bytes, const std::string& secret);

std::string node_of(const LatencyPacket& answer);
absl::Duration held_of(const LatencyPacket& answer);

// Returns whether the text may be the name of a Node of Kubernetes: 1 to 253 of a-z, 0-9, '-' and '.'.
bool is_node_name(absl::string_view text);

}  // namespace gleaner::probe
