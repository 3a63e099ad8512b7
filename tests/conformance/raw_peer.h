// RawPeer: a peer over a plain blocking socket, to send bytes that the transports of this project never send.
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
  // Connects to the port of `address` on 127.0.0.1. If that fails, the test fails.
  explicit RawPeer(const Address& address);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void send(ConstBytes bytes);
  void send(const std::string& text);
  // Seals the header and sends the frame.
  void send(wire::Header header, ConstBytes payload = {});
  // Sends the header without sealing it.
  void send_as_is(const wire::Header& header);
  // Shuts down the sending direction.
  void finish();
  // Returns the next frame, or a default header without payload if the stream has ended. Calls `poll`, which must poll
  // the other side, until then.
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
