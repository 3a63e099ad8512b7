#include "common/transport/rdma/connection_manager.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {

absl::StatusOr<EventChannel> ConnectionManager::open_channel() {
  EventChannel channel(rdma_create_event_channel());
  if (channel == nullptr) {
    return verbs_error(errno, "the RDMA connection manager can't be reached (is the module rdma_ucm loaded?)");
  }
  GLN_RETURN_IF_ERROR(set_nonblocking(channel->fd));
  return channel;
}

absl::StatusOr<CmId> ConnectionManager::make_id(void* context) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, context, RDMA_PS_TCP) != 0) {
    return verbs_error(errno, "can't make an RDMA connection");
  }
  return CmId(id);
}

void ConnectionManager::on_events(uint32_t /*events*/) {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) == 0) {
    // An id can't be destroyed before its event is acknowledged, which frees the event's data. So a copy is handled.
    rdma_cm_event copy = *event;
    std::array<std::byte, 256> data{};
    const bool has_data = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
                          event->event == RDMA_CM_EVENT_CONNECT_RESPONSE || event->event == RDMA_CM_EVENT_REJECTED;
    if (has_data && event->param.conn.private_data != nullptr) {
      std::memcpy(data.data(), event->param.conn.private_data, event->param.conn.private_data_len);
      copy.param.conn.private_data = data.data();
    } else if (has_data) {
      copy.param.conn.private_data_len = 0;
    }
    rdma_ack_cm_event(event);
    on_event_(copy);
  }
}

}  // namespace gleaner::transport::rdma
