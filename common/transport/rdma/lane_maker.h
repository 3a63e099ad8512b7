// LaneMaker makes a connection's lanes, which are queue pairs over further ports of both sides, once the handshake is
// done.
//
//   connecting side                                         accepting side
//   ask                                                -->
//                                                      <--  port, port, ..., invitation
//   request of a lane, with the invitation's 1st number -->  on the port where the accepting side listens for lanes
//                                                      <--  answer, with the invitation's 2nd number
//
// The connecting side pairs the ports (paths.h) and requests a lane for each pair. The connection's own pair of ports
// gets a lane, too. Otherwise payloads in the connection's own queue pair would delay the offers and grants behind them
// (head-of-line blocking), and so all other lanes.
//
// Requests and answers go by the connection manager, all other messages by the authenticated connection. So the two
// numbers of the invitation prove that a request and its answer come from the peer. Without these proofs no queue pair
// is made, and no remote key of a lane is sent. A connection goes on without a lane that can't be made.
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

// The private data of a lane's request and of the answer.
struct LaneGreeting {
  uint32_t magic = 0x4c4e4c47;  // "GLNL"
  uint16_t version = 2;
  uint16_t number = 0;               // of the lane; the connecting side numbers lanes from 1
  uint64_t bits_per_second = 0;      // of the lane
  std::array<uint8_t, 16> secret{};  // the invitation's first number in a request, its second in an answer
};
static_assert(sizeof(LaneGreeting) == 32);

class LaneMaker {
 public:
  LaneMaker(Transport* transport, Connection* connection) : transport_(transport), connection_(connection) {}

  // Handles an item about lanes from the peer.
  absl::Status on_item(const PacketReader::Item& item);
  // Returns whether a lane's request is for this connection.
  bool expects(const LaneGreeting& greeting) const;
  // Accepts or rejects a lane's request.
  void accept(CmId id, const LaneGreeting& greeting);
  // Gives up the lanes that are still being made.
  void stop() { dialing_.clear(); }

 private:
  absl::Status invite();
  absl::Status on_port(const PortItem& port);
  absl::Status on_invitation(const InvitationItem& invitation);
  void dial(uint16_t number, const Path& path);
  std::unique_ptr<Lane> make_lane(uint16_t number, int port, uint64_t bits_per_second);
  void on_lane_event(Lane& lane, const rdma_cm_event& event);
  absl::Status on_dial_event(Lane& lane, const rdma_cm_event& event);
  absl::Status request(Lane& lane);
  absl::Status establish(Lane& lane, const rdma_cm_event& event);
  absl::Status answer(std::unique_ptr<Lane> lane, const LaneGreeting& greeting);
  absl::Status open(Lane& lane);
  void come_up(const Lane& lane);
  void log_missing_lane(const Lane& lane, const absl::Status& why);

  Transport* const transport_;
  Connection* const connection_;
  std::vector<std::pair<PathEnd, uint16_t>> theirs_;  // the peer's ports, with the connection manager's port numbers
  std::optional<size_t> their_main_;                  // index in theirs_ of the port that the connection uses
  std::optional<InvitationItem> invitation_;
  std::vector<std::unique_ptr<Lane>> dialing_;  // requested by this side and not answered yet
};

}  // namespace gleaner::transport::rdma
