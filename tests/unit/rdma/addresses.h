// Makes IP addresses for tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

namespace gleaner::transport::rdma {

inline sockaddr_storage address(const std::string& text) {
  sockaddr_storage storage{};
  if (inet_pton(AF_INET, text.c_str(), &reinterpret_cast<sockaddr_in&>(storage).sin_addr) == 1) {
    storage.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, text.c_str(), &reinterpret_cast<sockaddr_in6&>(storage).sin6_addr) == 1) {
    storage.ss_family = AF_INET6;
  }
  return storage;
}

}  // namespace gleaner::transport::rdma
