#include "cli/launcher/rank_environment.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {

std::vector<std::string> torchrun_variables(const RankEnvironment& rank, const UserEnvironment& user) {
  std::vector<std::string> variables = {absl::StrCat("LOCAL_RANK=", rank.local_rank),
                                        absl::StrCat("LOCAL_WORLD_SIZE=", rank.local_ranks)};
  if (rank.elastic) return variables;
  variables.push_back(absl::StrCat("RANK=", rank.worker * rank.local_ranks + rank.local_rank));
  variables.push_back(absl::StrCat("WORLD_SIZE=", rank.workers * rank.local_ranks));
  const bool chosen = !user.master_address.empty() && !user.master_port.empty();
  variables.push_back(absl::StrCat("MASTER_ADDR=", chosen ? user.master_address : rank.master));
  variables.push_back(absl::StrCat("MASTER_PORT=", chosen ? user.master_port : absl::StrCat(rank.master_port)));
  return variables;
}

uint16_t free_port(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return 0;
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  auto* const address = reinterpret_cast<sockaddr*>(&bound);
  const bool ok = socket >= 0 && ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 &&
                  ::getsockname(socket, address, &size) == 0;
  if (socket >= 0) ::close(socket);
  ::freeaddrinfo(found);
  if (!ok) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(address)->sin_port);
}

std::string one_thread(uint32_t processes_of_a_machine, const UserEnvironment& user) {
  return processes_of_a_machine > 1 && !user.has_thread_count ? "OMP_NUM_THREADS=1" : "";
}

}  // namespace gleaner::launcher
