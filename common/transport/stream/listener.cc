#include "common/transport/stream/listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::transport::stream {
namespace {

constexpr int kAcceptsPerPoll = 64;

}  // namespace

absl::Status Listener::open(Descriptor socket) {
  GLN_RETURN_IF_ERROR(transport_->watch(EPOLL_CTL_ADD, socket.get(), EPOLLIN, this));
  socket_ = std::move(socket);
  return absl::OkStatus();
}

void Listener::on_events(uint32_t /*events*/) {
  for (int i = 0; i < kAcceptsPerPoll; ++i) {
    Descriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      failed_ = false;
      accept_(std::move(socket));
      continue;
    }
    if (errno == ECONNABORTED || errno == EINTR) continue;
    if (errno == EAGAIN) return;
    if (!std::exchange(failed_, true)) {
      transport_->env().log->error(
          "can't accept connections; if there are too many open files, raise the limit (ulimit -n)", "reason",
          std::strerror(errno));
    }
    paused_ = transport_->watch(EPOLL_CTL_MOD, socket_.get(), 0, this).ok();
    return;
  }
}

void Listener::on_tick() {
  if (paused_) paused_ = !transport_->watch(EPOLL_CTL_MOD, socket_.get(), EPOLLIN, this).ok();
}

}  // namespace gleaner::transport::stream
