// Tests of the inproc transport beyond the conformance suite.
#include "common/transport/inproc/transport.h"

#include <gtest/gtest.h>

#include "tests/conformance/rig.h"

namespace gleaner::transport::inproc {
namespace {

const Address kHere{"127.0.0.1", 7000};

// Keeps the payloads' buffers.
struct Keeper : End {
  void on_frame(transport::Connection&, const wire::Header&, Buffer payload) override {
    payloads.push_back(std::move(payload));
  }
  std::vector<Buffer> payloads;
};

TEST(Inproc, PayloadsAreHandedOverWithoutACopy) {
  Hub hub;
  BufferPool pool;
  End client_end;
  Keeper server_end;
  Transport client(&hub, &client_end);
  Transport server(&hub, &server_end);
  ASSERT_TRUE(server.listen(kHere).ok());
  transport::Connection* const connection = client.connect(kHere, {.job = kJob, .member = 3}).value();
  client.poll(absl::ZeroDuration());
  wire::Header header;
  header.type = wire::FrameType::kPush;
  Buffer sent = pool.take(1000);
  connection->send(header, sent);
  server.poll(absl::ZeroDuration());
  ASSERT_EQ(server_end.payloads.size(), 1u);
  EXPECT_EQ(server_end.payloads[0].bytes().data(), sent.bytes().data());
  EXPECT_FALSE(sent.sole_owner()) << "the receiver still uses the memory";
  server_end.payloads.clear();
  EXPECT_TRUE(sent.sole_owner());
}

TEST(Inproc, ADestroyedTransportDoesNotListen) {
  Hub hub;
  End client_end;
  End server_end;
  Transport client(&hub, &client_end);
  auto server = std::make_unique<Transport>(&hub, &server_end);
  ASSERT_TRUE(server->listen(kHere).ok());
  ASSERT_TRUE(client.connect(kHere, {.job = kJob}).ok());
  client.poll(absl::ZeroDuration());
  server.reset();
  while (client.pending()) client.poll(absl::ZeroDuration());
  ASSERT_EQ(client_end.closed.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(client_end.closed[0]));
  EXPECT_TRUE(absl::IsUnavailable(client.connect(kHere, {.job = kJob}).status()));
  Transport next(&hub, &server_end);
  EXPECT_TRUE(next.listen(kHere).ok());
  EXPECT_TRUE(client.connect(kHere, {.job = kJob}).ok());
}

}  // namespace
}  // namespace gleaner::transport::inproc
