// Measures only the messages that an all-reduce through one owner needs: each worker sends a message to the owner, and
// the owner answers all workers when it has all messages. A step consists of two such round trips.
//
// Arguments: --rank R --size N --address IP --bytes-file FILE. Rank 0 is the owner, and IP its address; the other ranks
// are the workers.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steps.h"

namespace {

constexpr uint16_t kPort = 29517;
constexpr int kYes = 1;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

sockaddr_in owner_of(const peers::Arguments& arguments) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (inet_pton(AF_INET, arguments.address.c_str(), &address.sin_addr) != 1) fail("tcp_round_trips: --address");
  return address;
}

int at_once(int connection) {
  if (connection < 0) fail("tcp_round_trips: no connection");
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &kYes, sizeof kYes);
  return connection;
}

std::vector<int> accept_all(const peers::Arguments& arguments) {
  const sockaddr_in address = owner_of(arguments);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(listener, 100) != 0) {
    fail("tcp_round_trips: listen");
  }
  std::vector<int> workers;
  for (int i = 1; i < arguments.size; ++i) workers.push_back(at_once(accept(listener, nullptr, nullptr)));
  close(listener);
  return workers;
}

// Connects to the owner. Retries for ten seconds, since a worker may start before the owner listens.
int connect_to_owner(const peers::Arguments& arguments) {
  const sockaddr_in address = owner_of(arguments);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return at_once(connection);
    }
    close(connection);
    usleep(100'000);
  }
  fail("tcp_round_trips: connect");
}

void send_all(int connection, const std::vector<char>& message) {
  for (size_t sent = 0; sent < message.size();) {
    const ssize_t now = write(connection, message.data() + sent, message.size() - sent);
    if (now <= 0) fail("tcp_round_trips: write");
    sent += static_cast<size_t>(now);
  }
}

void receive_all(int connection, std::vector<char>& message) {
  for (size_t received = 0; received < message.size();) {
    const ssize_t now = read(connection, message.data() + received, message.size() - received);
    if (now <= 0) fail("tcp_round_trips: read");
    received += static_cast<size_t>(now);
  }
}

void own(const peers::Arguments& arguments, std::vector<char>& message) {
  const std::vector<int> workers = accept_all(arguments);
  for (uint64_t trip = 0; trip < 2 * (arguments.warmup + arguments.steps); ++trip) {
    for (const int worker : workers) receive_all(worker, message);
    for (const int worker : workers) send_all(worker, message);
  }
}

void work(const peers::Arguments& arguments, std::vector<char>& message) {
  const int owner = connect_to_owner(arguments);
  std::vector<double> begins, ends;
  for (uint64_t step = 0; step < arguments.warmup + arguments.steps; ++step) {
    const double begin = peers::now();
    for (int trip = 0; trip < 2; ++trip) {
      send_all(owner, message);
      receive_all(owner, message);
    }
    if (step < arguments.warmup) continue;
    begins.push_back(begin);
    ends.push_back(peers::now());
  }
  peers::print(arguments, arguments.rank, true, begins, ends);
}

}  // namespace

int main(int argc, char** argv) {
  const peers::Arguments arguments = peers::parse(argc, argv);
  std::vector<char> message(arguments.bytes.front());
  arguments.rank == 0 ? own(arguments, message) : work(arguments, message);
}
