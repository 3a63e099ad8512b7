#include "common/transport/inproc/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/inproc/transport.h"

namespace gleaner::transport::inproc {

Connection::~Connection() { part(absl::UnavailableError("the other end was destroyed")); }

void Connection::send(const wire::Header& header, Buffer payload) {
  if (other_ == nullptr || !up_) return;
  wire::Header sized = header;
  sized.payload_bytes = static_cast<uint32_t>(payload.size());
  queued_bytes_ += wire::kHeaderBytes + payload.size();
  other_->transport_->post({Transport::Event::Kind::kFrame, other_, sized, std::move(payload), {}});
}

void Connection::close(absl::Status status) {
  if (std::exchange(closed_, true)) return;
  part(status);
  transport_->post({Transport::Event::Kind::kClosed, this, {}, {}, std::move(status)});
}

void Connection::part(absl::Status status) {
  Connection* const other = std::exchange(other_, nullptr);
  queued_bytes_ = 0;
  if (other == nullptr) return;
  other->other_ = nullptr;
  other->queued_bytes_ = 0;
  other->transport_->post({Transport::Event::Kind::kParted, other, {}, {}, std::move(status)});
}

}  // namespace gleaner::transport::inproc
