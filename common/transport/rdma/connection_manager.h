// ConnectionManager is a transport's access to the connection manager (librdmacm), which makes connections and reports
// their events. It owns the channel of these events, so it must outlive all ids. Belongs to the transport's thread.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/transport/rdma/verbs.h"
#include "common/transport/stream/source.h"

namespace gleaner::transport::rdma {

class ConnectionManager : public stream::Source {
 public:
  // Handles an event. The event and its private data are valid during the call only; the call may destroy the event's
  // id.
  using OnEvent = std::function<void(const rdma_cm_event&)>;

  // Unavailable: the kernel has no connection manager.
  static absl::StatusOr<EventChannel> open_channel();
  ConnectionManager(EventChannel channel, OnEvent on_event)
      : channel_(std::move(channel)), on_event_(std::move(on_event)) {}

  int descriptor() const { return channel_->fd; }  // readable when there are events
  // Makes an id whose events come to this object. `context`: an IdUser or null.
  absl::StatusOr<CmId> make_id(void* context);

 private:
  void on_events(uint32_t events) override;

  const EventChannel channel_;
  const OnEvent on_event_;
};

}  // namespace gleaner::transport::rdma
