#include "tests/rdma-lab/raw_peer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace gleaner::transport::rdma {
namespace {

constexpr int kMilliseconds = 5000;

bool wait_for(ibv_cq* queue, ibv_wc* completion) {
  for (int i = 0; i < kMilliseconds; ++i) {
    if (ibv_poll_cq(queue, 1, completion) > 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

RawPeer::RawPeer(const Address& address, ConstBytes greeting)
    : channel_(rdma_create_event_channel()), memory_(2 * kSlots * kSlotBytes) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP), 0);
  id_.reset(id);
  auto targets = tcp::resolve(address).value();
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&targets[0].address), kMilliseconds), 0);
  if (!next_event(RDMA_CM_EVENT_ADDR_RESOLVED)) return;
  EXPECT_EQ(rdma_resolve_route(id, kMilliseconds), 0);
  if (!next_event(RDMA_CM_EVENT_ROUTE_RESOLVED)) return;
  domain_.reset(ibv_alloc_pd(id->verbs));
  sent_.reset(ibv_create_cq(id->verbs, kSlots, nullptr, nullptr, 0));
  received_.reset(ibv_create_cq(id->verbs, kSlots, nullptr, nullptr, 0));
  constexpr int access = IBV_ACCESS_LOCAL_WRITE;
  region_.reset(ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(), access));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = sent_.get();
  wanted.recv_cq = received_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {.max_send_wr = kSlots, .max_recv_wr = kSlots, .max_send_sge = 1, .max_recv_sge = 1};
  EXPECT_EQ(rdma_create_qp(id, domain_.get(), &wanted), 0);
  for (size_t i = 0; i < kSlots; ++i) {
    ibv_sge piece{reinterpret_cast<uint64_t>(&memory_[i * kSlotBytes]), kSlotBytes, region_->lkey};
    ibv_recv_wr request{.wr_id = i, .next = nullptr, .sg_list = &piece, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(id->qp, &request, &bad), 0);
  }
  rdma_conn_param parameters{};
  parameters.private_data = greeting.data();
  parameters.private_data_len = static_cast<uint8_t>(greeting.size());
  parameters.retry_count = 7;
  EXPECT_EQ(rdma_connect(id, &parameters), 0);
  connected_ = next_event(RDMA_CM_EVENT_ESTABLISHED);
}

RawPeer::~RawPeer() {
  if (id_ != nullptr && id_->qp != nullptr) rdma_destroy_qp(id_.get());
}

bool RawPeer::next_event(rdma_cm_event_type expected) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_.get(), &event) != 0) return false;
  const bool as_expected = event->event == expected;
  if (event->event == RDMA_CM_EVENT_REJECTED && event->param.conn.private_data != nullptr) {
    const auto* text = static_cast<const char*>(event->param.conn.private_data);
    refusal_.assign(text, strnlen(text, event->param.conn.private_data_len));
  }
  rdma_ack_cm_event(event);
  return as_expected;
}

ibv_wc_status RawPeer::finish_send() {
  ibv_wc completion{};
  EXPECT_TRUE(wait_for(sent_.get(), &completion));
  return completion.status;
}

void RawPeer::send(ConstBytes packet) {
  std::byte* const at = &memory_[kSlots * kSlotBytes];
  std::memcpy(at, packet.data(), packet.size());
  ibv_sge piece{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(packet.size()), region_->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(id_->qp, &request, &bad), 0);
  finish_send();
}

void RawPeer::send_item(ItemKind kind, uint16_t number, ConstBytes body) {
  std::vector<std::byte> slot(kSlotBytes);
  PacketWriter packet(slot);
  packet.add(kind, number, body);
  send(ConstBytes(slot).first(packet.finish(0)));
}

void RawPeer::send_frame(const wire::HandshakeFrame& frame) {
  std::vector<std::byte> body(wire::kHeaderBytes + frame.payload.size());
  wire::Header header = frame.header;
  wire::seal(header, frame.payload);
  std::memcpy(body.data(), &header, sizeof(header));
  std::memcpy(body.data() + sizeof(header), frame.payload.data(), frame.payload.size());
  send_item(ItemKind::kFrame, 0, body);
}

std::vector<std::byte> RawPeer::receive() {
  const std::vector<std::vector<std::byte>> bodies = receive_all();
  return bodies.empty() ? std::vector<std::byte>() : bodies[0];
}

std::vector<std::vector<std::byte>> RawPeer::receive_all() {
  ibv_wc completion{};
  if (!wait_for(received_.get(), &completion) || completion.status != IBV_WC_SUCCESS) return {};
  const ConstBytes packet(&memory_[completion.wr_id * kSlotBytes], completion.byte_len);
  auto reader = PacketReader::open(packet);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<std::vector<std::byte>> bodies;
  while (reader.ok() && !reader->done()) {
    const auto item = reader->next();
    EXPECT_TRUE(item.ok()) << item.status();
    if (!item.ok()) break;
    bodies.emplace_back(item->body.begin(), item->body.end());
  }
  return bodies;
}

ibv_wc_status RawPeer::write(uint64_t address, uint32_t key) {
  ibv_sge piece{reinterpret_cast<uint64_t>(&memory_[kSlots * kSlotBytes]), 8, region_->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = key;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(id_->qp, &request, &bad), 0);
  return finish_send();
}

}  // namespace gleaner::transport::rdma
