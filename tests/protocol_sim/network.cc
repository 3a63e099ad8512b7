#include "tests/protocol_sim/network.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace gleaner::sim {
namespace {

std::string describe(Direction direction, uint32_t worker, uint32_t summer, const wire::Header& header) {
  return absl::StrCat("worker ", worker, direction == Direction::kToOwner ? " -> " : " <- ", "process ", summer, " ",
                      wire::name_of(header.type), " tensor ", header.tensor, " partition ", header.partition, " step ",
                      header.step, " epoch ", header.epoch, " (", header.payload_bytes, " bytes)");
}

}  // namespace

Network::Network(const Scenario& scenario, EventQueue* events, Dice* dice, Report* report, BufferPool* pool,
                 Deliver deliver, Break breaks)
    : weather_(scenario.weather),
      events_(events),
      dice_(dice),
      report_(report),
      pool_(pool),
      deliver_(std::move(deliver)),
      break_(std::move(breaks)) {}

void Network::connect(uint32_t worker, uint32_t summer) {
  Link& way = link(worker, summer);
  way.up = true;
  ++way.generation;
  way.bytes = way.missing = 0;
}

void Network::disconnect(uint32_t worker, uint32_t summer) {
  link(worker, summer).up = false;
  ++link(worker, summer).generation;
}

void Network::send(Direction direction, uint32_t worker, uint32_t summer, wire::Header header, Buffer payload) {
  Link& way = link(worker, summer);
  report_->trace(events_->now(), "send     ", describe(direction, worker, summer, header));
  if (!way.up) return;
  ++report_->coverage.frames;
  ++in_flight_;
  if (direction == Direction::kToOwner) {
    way.bytes += wire::kHeaderBytes + payload.size();
    ++way.missing;
    if (way.bytes > way.limit) {
      events_->after(delay(way.last_departure[0], false), [this, worker, summer, generation = way.generation] {
        if (link(worker, summer).generation == generation) break_(worker, summer);
      });
    }
  }
  wire::seal(header, payload.bytes());
  Frame frame{direction, worker, summer, way.generation, header, std::move(payload)};
  const Nanoseconds wait = delay(way.last_departure[static_cast<size_t>(direction)], is_slice(header));
  events_->after(wait, [this, frame = std::move(frame)]() mutable { depart(std::move(frame)); });
}

void Network::depart(Frame frame) {
  check_still_held(frame);
  if (link(frame).generation != frame.generation) return lose(frame);
  const bool in_process = frame.worker == frame.summer;
  if (link(frame).cut[static_cast<size_t>(frame.direction)]) return lose(frame);
  if (!in_process) {
    if (!wire::check_payload(frame.header, frame.payload.bytes()).ok()) {
      report_->fail("payload changed while it waited to be sent: ",
                    describe(frame.direction, frame.worker, frame.summer, frame.header));
    }
    Buffer copy = pool_->take(frame.payload.size());
    std::ranges::copy(frame.payload.bytes(), copy.bytes().begin());
    frame.payload = std::move(copy);
    if (dice_->chance(weather_.duplicate_chance)) {
      ++report_->coverage.duplicates;
      ++in_flight_;
      const Nanoseconds wait =
          delay(link(frame).last_arrival[static_cast<size_t>(frame.direction)], is_slice(frame.header));
      events_->after(wait, [this, copy = frame]() mutable {
        copy.copy = true;
        arrive(copy);
      });
    }
  }
  const Nanoseconds wait =
      delay(link(frame).last_arrival[static_cast<size_t>(frame.direction)], is_slice(frame.header));
  events_->after(wait, [this, frame = std::move(frame)] { arrive(frame); });
}

// Checks that the payload's memory was not given back to its owner while the frame, which holds it, had not departed.
void Network::check_still_held(const Frame& frame) {
  const auto is_free = [](std::byte byte) { return byte == kFreeMemory; };
  if (frame.payload.size() < 8 || !std::ranges::all_of(frame.payload.bytes(), is_free)) return;
  report_->fail("memory was given back while a frame held it: ",
                describe(frame.direction, frame.worker, frame.summer, frame.header));
}

void Network::arrive(const Frame& frame) {
  if (is_slice(frame.header) && frame.generation <= link(frame).lost_slices) return lose(frame);
  if (link(frame).generation != frame.generation) {
    if (frame.direction == Direction::kToWorker || !dice_->chance(weather_.survive_chance)) return lose(frame);
    ++report_->coverage.survivors;
  }
  --in_flight_;
  const bool counts = frame.direction == Direction::kToOwner && !frame.copy;
  if (counts && link(frame).generation == frame.generation) --link(frame).missing;
  std::array<std::byte, wire::kHeaderBytes> bytes;
  std::memcpy(bytes.data(), &frame.header, sizeof(frame.header));
  const auto header = wire::decode_header(std::span<const std::byte, wire::kHeaderBytes>(bytes));
  if (!header.ok()) return report_->fail("header does not decode: ", header.status().ToString());
  report_->trace(events_->now(), "delivered ", describe(frame.direction, frame.worker, frame.summer, *header));
  deliver_(frame.direction, frame.worker, frame.summer, *header, frame.payload);
}

void Network::lose(const Frame& frame) {
  report_->trace(events_->now(), "lost     ", describe(frame.direction, frame.worker, frame.summer, frame.header));
  ++report_->coverage.lost;
  --in_flight_;
  if (is_slice(frame.header)) lose_slices(link(frame), frame.generation);
}

// Returns the delay until the next departure or arrival in a direction of a link, and updates `last`, the time of the
// latest one before. With `keeps_order`, or Weather::ordered, it is not before that time.
Nanoseconds Network::delay(Nanoseconds& last, bool keeps_order) {
  Nanoseconds delay = dice_->between(weather_.least_delay, weather_.most_delay);
  if (dice_->chance(weather_.late_chance)) delay += dice_->between(0, weather_.late_delay);
  if (keeps_order || weather_.ordered) delay = std::max(delay, last - events_->now());
  last = std::max(last, events_->now() + delay);
  return delay;
}

}  // namespace gleaner::sim
