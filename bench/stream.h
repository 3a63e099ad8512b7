// Connects two transports for benchmarks: the caller's thread polls the client, a second thread polls the server.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "common/base/env.h"
#include "common/transport/transport.h"
#include "tests/conformance/one_job.h"

namespace gleaner::transport {

// Counts the frames that it receives and, if `echo` is set, sends them back. A closed connection ends the process.
class CountingEnd : public Handler {
 public:
  void on_connected(Connection& connection) override { up = &connection; }
  absl::StatusOr<Buffer> on_header(Connection&, const wire::Header& header) override {
    return pool.take(header.payload_bytes);
  }
  void on_frame(Connection& connection, const wire::Header& header, Buffer payload) override {
    if (echo) {
      wire::Header back = header;
      back.payload_crc = 0;  // send() computes it
      connection.send(back, std::move(payload));
    }
    frames.fetch_add(1, std::memory_order_release);
  }
  void on_closed(Connection&, const absl::Status& status) override {
    std::fprintf(stderr, "the connection was closed: %s\n", status.ToString().c_str());
    std::_Exit(1);
  }

  BufferPool pool;
  Connection* up = nullptr;
  std::atomic<bool> echo{false};
  std::atomic<uint64_t> frames{0};
};

class Stream {
 public:
  // `make_client` and `make_server` make a transport from (const Env&, Handler*, const wire::JobSecrets*). `client` and
  // `server` must outlive the stream.
  template <typename MakeClient, typename MakeServer>
  Stream(const Address& at, CountingEnd* client, CountingEnd* server, const MakeClient& make_client,
         const MakeServer& make_server)
      : system_(LogOptions{"bench", LogLevel::kWarning}),
        server_(make_server(system_.env(), server, &job_)),
        client_(make_client(system_.env(), client, &job_)) {
    const Address address = server_->listen(at).value();
    thread_ = std::thread([this] {
      while (!stop_) server_->poll(absl::Milliseconds(100));
    });
    (void)client_->connect(address, {.job = kJob, .member = 1, .secret = job_.secret}).value();
    while (client->up == nullptr) client_->poll(absl::Milliseconds(10));
  }
  ~Stream() {
    stop_ = true;
    server_->wake();
    thread_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Transport& client() { return *client_; }
  const Clock& clock() const { return *system_.env().clock; }

 private:
  const SystemEnv system_;
  OneJob job_;
  std::unique_ptr<Transport> server_;
  std::unique_ptr<Transport> client_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace gleaner::transport
