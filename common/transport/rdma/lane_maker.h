// How a connection gets lanes: queue pairs over further ports of both sides, once its handshake is done.
//
//   the one who connected              the one who accepted
//   ask ------------------------------>
//   <-------- port, port, ..., invitation
//   request of a lane (the invitation's first number) ---> on that port, where it listens for lanes
//   <---------------- answer (the invitation's second number)
//
// The connection's own ports get a lane, too: payloads that wait for their turn there would keep offers and grants
// waiting behind them, and with these the other lanes.
//
// All but the requests goes by the connection itself, so both know by the numbers that it is the proven peer: no queue
// pair is made for anybody else, and no key of a lane is told before. A lane that can't be made is done without.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/transport/rdma/lane.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/paths.h"

namespace gleaner::transport::rdma {

class Connection;
class Link;
class Transport;

// What asks for a lane, and what answers.
struct LaneGreeting {
  uint32_t magic = 0x4c4e4c47;  // "GLNL"
  uint16_t version = 2;
  uint16_t number = 0;           // of the lane; the asking side counts from 1
  uint64_t bits_per_second = 0;  // of the lane
  std::array<uint8_t, 16> secret{};
};
static_assert(sizeof(LaneGreeting) == 32);

class LaneMaker : public Lane::User {
 public:
  LaneMaker(Transport* transport, Connection* connection) : transport_(transport), connection_(connection) {}

  // What the peer told about lanes.
  absl::Status on_item(const PacketReader::Item& item);
  // Whether a lane's request is for this connection.
  bool expects(const LaneGreeting& greeting) const;
  // Answers it, or rejects it.
  void accept(CmId id, const LaneGreeting& greeting);
  // Lanes that are not made yet are given up.
  void stop() { dialing_.clear(); }

 private:
  absl::Status invite();
  absl::Status on_port(const PortItem& port);
  absl::Status on_invitation(const InvitationItem& invitation);
  void dial(uint16_t number, const Path& path);
  void on_lane_event(Lane& lane, const rdma_cm_event& event) override;
  absl::Status on_dial_event(Lane& lane, const rdma_cm_event& event);
  absl::Status request(Lane& lane);
  absl::Status establish(Lane& lane, const rdma_cm_event& event);
  absl::Status answer(std::unique_ptr<Lane> lane, const LaneGreeting& greeting);
  absl::Status open(Lane& lane);
  void come_up(const Lane& lane);
  void go_without(const Lane& lane, const absl::Status& why);

  Transport* const transport_;
  Connection* const connection_;
  std::vector<std::pair<PathEnd, uint16_t>> theirs_;  // and the connection manager's port numbers
  std::optional<size_t> their_main_;
  std::optional<InvitationItem> invitation_;
  std::vector<std::unique_ptr<Lane>> dialing_;
};

}  // namespace gleaner::transport::rdma
