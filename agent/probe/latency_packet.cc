#include "agent/probe/latency_packet.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/probe/proof.h"

namespace gleaner::probe {
namespace {

constexpr size_t kLongestName = 253;

std::array<uint8_t, 16> proof_of(const LatencyPacket& packet, const std::string& secret) {
  const absl::string_view covered(reinterpret_cast<const char*>(&packet), offsetof(LatencyPacket, proof));
  const Proof whole = sign(absl::StrCat("gleaner-latency-1 ", covered), secret);
  std::array<uint8_t, 16> proof{};
  std::copy_n(whole.begin(), proof.size(), proof.begin());
  return proof;
}

bool has_valid_fields(const LatencyPacket& packet) {
  const LatencyPacket expected;
  if (packet.magic != expected.magic || packet.version != expected.version || packet.reserved != expected.reserved) {
    return false;
  }
  if (packet.kind == PacketKind::kQuestion) return packet.node == expected.node && packet.held_nanoseconds == 0;
  const std::string name = node_of(packet);
  const bool is_padded = std::all_of(packet.node.begin() + static_cast<std::ptrdiff_t>(name.size()), packet.node.end(),
                                     [](char each) { return each == 0; });
  return packet.kind == PacketKind::kAnswer && is_padded && is_node_name(name);
}

}  // namespace

LatencyPacket make_question(uint16_t sequence, uint16_t round, const PacketNonce& nonce, const std::string& secret) {
  LatencyPacket question{.sequence = sequence, .round = round, .nonce = nonce};
  question.proof = proof_of(question, secret);
  return question;
}

LatencyPacket make_answer(const LatencyPacket& question, absl::string_view node, absl::Duration held,
                          const std::string& secret) {
  LatencyPacket answer = question;
  answer.kind = PacketKind::kAnswer;
  constexpr int64_t kLongest = std::numeric_limits<uint32_t>::max();
  answer.held_nanoseconds = static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Nanoseconds(held), 0, kLongest));
  answer.node = {};
  std::copy_n(node.begin(), std::min(node.size(), answer.node.size()), answer.node.begin());
  answer.proof = proof_of(answer, secret);
  return answer;
}

std::optional<LatencyPacket> read_packet(ConstBytes bytes, const std::string& secret) {
  LatencyPacket packet;
  if (bytes.size() != sizeof(packet)) return std::nullopt;
  std::memcpy(&packet, bytes.data(), sizeof(packet));
  if (!has_valid_fields(packet)) return std::nullopt;
  if (!same_proof(packet.proof, proof_of(packet, secret))) return std::nullopt;
  return packet;
}

std::string node_of(const LatencyPacket& answer) { return {answer.node.begin(), std::ranges::find(answer.node, '\0')}; }

absl::Duration held_of(const LatencyPacket& answer) { return absl::Nanoseconds(answer.held_nanoseconds); }

bool is_node_name(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](char each) {
    return absl::ascii_islower(each) || absl::ascii_isdigit(each) || each == '-' || each == '.';
  });
}

}  // namespace gleaner::probe
