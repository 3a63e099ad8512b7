// http_get(): asks a server of this machine for a page.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/http_peer.h"

namespace gleaner {

// Returns the whole answer: the status line, the headers and the body.
inline std::string http_get(const Address& address, const std::string& path) {
  HttpPeer peer(address);
  EXPECT_TRUE(peer.connected()) << address.to_string();
  EXPECT_TRUE(peer.send(absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n")));
  return peer.receive();
}

}  // namespace gleaner
