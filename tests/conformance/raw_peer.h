// A peer over a plain blocking socket, for what no transport of ours would send.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/base/address.h"
#include "common/base/buffer.h"
#include "common/wire/handshake.h"

namespace gleaner::transport {

class RawPeer {
 public:
  explicit RawPeer(const Address& address);  // 127.0.0.1; connected, or the test fails
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void send(ConstBytes bytes);
  void send(const std::string& text);
  // Sealed here.
  void send(wire::Header header, ConstBytes payload = {});
  // As it is, checksums included.
  void send_as_is(const wire::Header& header);
  void finish();  // no more from us
  // The next frame, while `poll` makes the other side go on; type kPing and no payload when the stream ends.
  template <typename Poll>
  std::pair<wire::Header, std::string> receive(Poll poll) {
    while (!readable()) poll();
    return read_frame(poll);
  }
  bool readable() const;

 private:
  template <typename Poll>
  std::pair<wire::Header, std::string> read_frame(Poll poll) {
    wire::Header header;
    const auto bytes = std::as_writable_bytes(std::span(&header, 1));
    if (!read(bytes, poll)) return {};
    std::string payload(header.payload_bytes, '\0');
    read(std::as_writable_bytes(std::span(payload)), poll);
    return {header, payload};
  }
  template <typename Poll>
  bool read(MutableBytes bytes, Poll poll) {
    while (!bytes.empty()) {
      while (!readable()) poll();
      const size_t got = read_some(bytes);
      if (got == 0) return false;
      bytes = bytes.subspan(got);
    }
    return true;
  }
  size_t read_some(MutableBytes bytes);

  const int descriptor_;
};

}  // namespace gleaner::transport
