#include "comm-lib/executor/peers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/faults.h"

namespace gleaner::executor {

void Peers::send(uint32_t index, OutgoingSlice slice, absl::Duration now, Actions& actions) {
  Peer& peer = peers_[index];
  if (!peer.owes()) peer.since = now;
  peer.ready.push(std::move(slice));
  flush(index, actions);
}

bool Peers::await(uint32_t index, const Subject& subject, Actions& actions) {
  if (!peers_[index].is_connected) return false;
  wire::Header header = header_of(wire::FrameType::kAwait);
  subject.write_to(header);
  header.confirmed = peers_[index].link.take_confirmation();
  actions.sends.push_back({index, header, {}});
  return true;
}

bool Peers::has_room(const Peer& peer) const {
  const OutgoingSlice& slice = peer.ready.front();
  const uint64_t bytes = slice.payload.size() + wire::kHeaderBytes;
  const bool is_of_call = (slice.subject.tensor & wire::kCallBit) != 0;
  return peer.link.unconfirmed_bytes() <= (is_of_call ? bytes : 0) ||
         peer.link.unconfirmed_bytes() + bytes <= window_bytes_;
}

void Peers::flush(uint32_t index, Actions& actions) {
  Peer& peer = peers_[index];
  while (peer.is_connected && !peer.ready.empty() && has_room(peer)) {
    OutgoingSlice slice = peer.ready.pop();
    recorder_.on_sent(index, slice);
    wire::Header header = header_of(wire::FrameType::kSlice);
    slice.subject.write_to(header);
    header.data_type = slice.type;
    header.payload_bytes = static_cast<uint32_t>(slice.payload.size());
    header.confirmed = peer.link.take_confirmation();
    ++counters_.sent;
    counters_.sent_bytes += slice.payload.size();
    header = peer.link.send({header, slice.payload});
    actions.sends.push_back({index, header, std::move(slice.payload)});
  }
}

void Peers::on_connected(uint32_t index, Actions& actions) {
  std::erase_if(actions.sends, [&](const exchange::Send& send) {
    return send.member == index && wire::is_of_schedule(send.header.type);
  });
  Peer& peer = peers_[index];
  peer.is_connected = true;
  if (!peer.link.unconfirmed().empty() && !GLN_MUTATION("slices are not sent again")) {
    repeat(index, actions);
  } else {
    send_confirmation(index, actions);
  }
  flush(index, actions);
}

Buffer Peers::copy_of(const Buffer& payload) const {
  Buffer copy = pool_->take(payload.size());
  std::memcpy(copy.bytes().data(), payload.bytes().data(), copy.size());
  return copy;
}

void Peers::repeat(uint32_t index, Actions& actions) {
  PeerLink& link = peers_[index].link;
  const uint32_t confirmed = link.take_confirmation();
  for (size_t i = 0; i < link.unconfirmed().size(); ++i) {
    const PeerLink::Sent& sent = link.unconfirmed()[i];
    wire::Header header = sent.header;
    header.epoch = epoch_;
    header.confirmed = confirmed;
    Buffer copy = GLN_MUTATION("slices are sent again without a copy") ? sent.payload : copy_of(sent.payload);
    ++counters_.sent;
    counters_.sent_bytes += copy.size();
    ++counters_.repeated;
    actions.sends.push_back({index, header, std::move(copy)});
  }
}

bool Peers::on_confirmed(uint32_t index, uint32_t confirmed, Actions& actions) {
  if (!peers_[index].link.confirm(confirmed)) return false;
  flush(index, actions);
  return true;
}

void Peers::send_confirmation(uint32_t index, Actions& actions) {
  wire::Header header = header_of(wire::FrameType::kArrived);
  header.confirmed = peers_[index].link.take_confirmation();
  actions.sends.push_back({index, header, {}});
}

void Peers::confirm(uint32_t index, Actions& actions) {
  const Peer& peer = peers_[index];
  const bool is_due = peer.link.owed_slices() >= kMostOwedSlices ||
                      peer.link.owed_bytes() >= std::max<uint64_t>(1, std::min(kMostOwedBytes, window_bytes_ / 8));
  if (is_due && peer.is_connected) send_confirmation(index, actions);
}

void Peers::tick(Actions& actions) {
  for (uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].is_connected && peers_[i].link.owed_slices() > 0) send_confirmation(i, actions);
  }
}

void Peers::block(uint32_t index, absl::Duration now) {
  Peer& peer = peers_[index];
  if (!peer.owes()) peer.since = now;
  ++peer.blocked;
}

bool Peers::idle() const {
  return std::ranges::none_of(peers_, [](const Peer& peer) {
    if (!peer.is_connected && GLN_MUTATION("a worker leaves though a peer may lack its slices")) return false;
    return peer.awaits_confirmation() || (!peer.has_left && peer.link.owed_slices() > 0);
  });
}

std::vector<uint32_t> Peers::waiting_for() const {
  std::vector<uint32_t> waiting;
  for (uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].owes()) waiting.push_back(i);
  }
  std::ranges::stable_sort(waiting, [this](uint32_t a, uint32_t b) { return peers_[a].since < peers_[b].since; });
  return waiting;
}

uint64_t Peers::unconfirmed_bytes() const {
  uint64_t bytes = 0;
  for (const Peer& peer : peers_) bytes += peer.link.unconfirmed_bytes();
  return bytes;
}

void Peers::clear() {
  for (Peer& peer : peers_) {
    peer.blocked = 0;
    peer.ready.clear();
    peer.link = PeerLink();
  }
}

wire::Header Peers::header_of(wire::FrameType type) const {
  wire::Header header;
  header.type = type;
  header.job = job_;
  header.epoch = epoch_;
  header.sender = worker_;
  return header;
}

}  // namespace gleaner::executor
