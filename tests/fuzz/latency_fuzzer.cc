// Fuzzes packets of latencies: bytes from the network are a valid packet or none. Half of the inputs get a valid proof,
// so that the fuzzer also reaches the code behind this check. The answer to a question is valid and no larger.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "agent/probe/latency_packet.h"
#include "agent/probe/proof.h"

namespace {

using gleaner::ConstBytes;
namespace probe = gleaner::probe;

constexpr char kSecret[] = "secret";

void prove(probe::LatencyPacket& packet) {
  const absl::string_view covered(reinterpret_cast<const char*>(&packet), offsetof(probe::LatencyPacket, proof));
  const probe::Proof whole = probe::sign("gleaner-latency-1 " + std::string(covered), kSecret);
  std::copy_n(whole.begin(), packet.proof.size(), packet.proof.begin());
}

void check(const probe::LatencyPacket& packet) {
  if (packet.kind == probe::PacketKind::kAnswer) {
    if (!probe::is_node_name(probe::node_of(packet))) std::abort();
    return;
  }
  const auto answer = probe::make_answer(packet, "node-1", absl::Microseconds(5), kSecret);
  const auto read = probe::read_packet(std::as_bytes(std::span(&answer, 1)), kSecret);
  if (!read.has_value() || read->nonce != packet.nonce || read->sequence != packet.sequence) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool is_proved = data[0] % 2 == 1;
  const ConstBytes input = std::as_bytes(std::span(data, size)).subspan(1);
  if (!is_proved) {
    if (probe::read_packet(input, kSecret).has_value()) std::abort();  // random bytes must not prove a secret
    return 0;
  }
  probe::LatencyPacket packet;
  auto* const fields = reinterpret_cast<std::byte*>(&packet) + sizeof(packet.magic);
  std::copy_n(input.begin(), std::min(input.size(), sizeof(packet) - sizeof(packet.magic)), fields);
  prove(packet);
  if (const auto read = probe::read_packet(std::as_bytes(std::span(&packet, 1)), kSecret)) check(*read);
  return 0;
}
