// Fuzzes packets from another local rank: reads them, and passes their messages to the leader's record (PushPullRecord)
// and to a rank (Requests). Each message must be an error or a valid next step. The first byte of an input tells
// whether the rest is a raw packet, or a list of messages in short form, which reach deeper code.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "comm-lib/local/layout.h"
#include "comm-lib/local/message.h"
#include "comm-lib/local/push_pull_record.h"
#include "comm-lib/local/requests.h"
#include "comm-lib/local/segment.h"

namespace gleaner::local {
namespace {

constexpr uint32_t kRanks = 3;

class NoEvents : public Events {
  void on_connected() override {}
  void on_reduced(uint32_t, ReduceOp, MutableBytes, MutableBytes) override {}
  void on_done(uint32_t, const absl::Status&) override {}
  void on_failed(const absl::Status&) override {}
};

void read_one(const Message& message, ConstBytes payload) {
  HelloPayload hello;
  SegmentPayload segment;
  (void)read_payload(payload, hello, message.type);
  (void)read_payload(payload, segment, message.type);
  if (status_of(message, payload).ok() != (message.detail == 0)) std::abort();
}

// Lets the rank start every push_pull that it may, and passes it `message` as a message of the leader.
void follow(Requests& rank, const Message& message, ConstBytes payload, MutableBytes data) {
  for (uint32_t tensor = 0; tensor < rank.tensors(); ++tensor) {
    const MutableBytes bytes = data.first(rank.bytes_of(tensor));
    (void)rank.start(tensor, ReduceOp::kSum, bytes, bytes);
  }
  const bool by_gpu = message.by_gpu != 0;
  if (message.type == MessageType::kCopy) (void)rank.copy(message.tensor, message.step);
  if (message.type == MessageType::kReduce) (void)rank.reduce(message.tensor, message.step, by_gpu);
  if (message.type == MessageType::kResult) {
    (void)rank.finish(message.tensor, message.step, status_of(message, payload), by_gpu);
  }
  if (message.type == MessageType::kGather) (void)rank.gather(message.tensor, message.step);
  size_t budget = 1 << 20;
  while (rank.advance(budget)) {
  }
}

void lead(PushPullRecord& record, uint32_t from, const Message& message) {
  const bool ready = message.type == MessageType::kReady;
  if (!ready && message.type != MessageType::kReduced) return;
  const auto next = ready ? record.on_ready(from, message.tensor, message.step, static_cast<ReduceOp>(message.detail))
                          : record.on_reduced(from, message.tensor, message.step);
  if (!next.ok() || *next != PushPullRecord::Next::kNetwork) return;
  if (!record.summed(message.tensor)) std::abort();
  record.publish(message.tensor);
}

// Makes a packet from messages in short form: each six bytes of input are one message, whose payload is a copy of the
// beginning of the remaining input.
std::vector<std::byte> spell_out(ConstBytes input) {
  std::vector<std::byte> packet;
  for (; input.size() >= 6; input = input.subspan(6)) {
    const auto at = [&](size_t i) { return static_cast<uint8_t>(input[i]); };
    Message message;
    message.type = static_cast<MessageType>(at(0) % 20);
    message.detail = at(1) % 20;
    message.by_gpu = at(1) / 20 % 2;
    message.tensor = at(2) % 5;
    message.step = at(3) % 4;
    message.version = at(4) == 255 ? uint8_t{kVersion + 1} : kVersion;
    const ConstBytes payload = input.first(std::min<size_t>(input.size(), at(5) % 60));
    message.payload_bytes = static_cast<uint32_t>(payload.size()) + (at(4) == 254 ? 1 : 0);
    const ConstBytes header = payload_of(message);
    packet.insert(packet.end(), header.begin(), header.end());
    packet.insert(packet.end(), payload.begin(), payload.end());
  }
  return packet;
}

void run(ConstBytes input) {
  static const kernels::Kernels kernels = *kernels::Kernels::choose("");
  const std::vector<TensorShape> shapes = {{3, DataType::kFloat32}, {0, DataType::kInt32}, {40000, DataType::kFloat16}};
  const Layout layout = *lay_out(shapes, 0, kRanks);
  static const std::unique_ptr<Segment> segment = *Segment::create(layout.total_bytes());
  static std::vector<std::byte> data(1 << 20);
  static NoEvents events;
  Requests rank(1, kRanks, &kernels, &events);
  rank.add(shapes);
  rank.attach(layout, *segment);
  PushPullRecord record(kRanks);
  for (uint32_t i = 0; i < shapes.size(); ++i) record.add(reducers(rank.bytes_of(i), kRanks));

  PacketReader reader(input);
  Message message;
  ConstBytes payload;
  for (uint32_t i = 0;; ++i) {
    const auto more = reader.next(message, payload);
    if (!more.ok() || !*more) return;
    if (payload.size() > input.size()) std::abort();
    read_one(message, payload);
    lead(record, i % kRanks, message);
    follow(rank, message, payload, data);
  }
}

}  // namespace
}  // namespace gleaner::local

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  if (size == 0) return 0;
  const auto rest = input.subspan(1);
  gleaner::local::run(data[0] % 2 == 0 ? gleaner::local::spell_out(rest)
                                       : std::vector<std::byte>(rest.begin(), rest.end()));
  return 0;
}
