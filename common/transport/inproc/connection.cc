#include "common/transport/inproc/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/inproc/transport.h"

namespace gleaner::transport::inproc {

Connection::~Connection() {
  if (other_ != nullptr) other_->close(absl::UnavailableError(absl::StrCat(peer_.address, " is gone")));
}

void Connection::send(const wire::Header& header, Buffer payload) {
  if (other_ == nullptr) return;
  wire::Header sealed = header;
  sealed.payload_bytes = static_cast<uint32_t>(payload.size());
  other_->transport_->post({Transport::Event::Kind::kFrame, other_, sealed, std::move(payload), {}});
}

void Connection::close(absl::Status status) {
  if (std::exchange(closed_, true)) return;
  Connection* const other = std::exchange(other_, nullptr);
  if (other != nullptr) {
    other->other_ = nullptr;
    other->close(
        absl::UnavailableError(absl::StrCat("connection to ", other->peer_.address, " was closed by the peer")));
  }
  transport_->post({Transport::Event::Kind::kClosed, this, {}, {}, std::move(status)});
}

}  // namespace gleaner::transport::inproc
