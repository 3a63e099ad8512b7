// Tests of the shm transport beyond the conformance suite: peers that die or write arbitrary bytes, files that are not
// valid segments, and directories that can't be used.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "common/transport/shm/transport.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/shm_peer.h"

namespace gleaner::transport {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// Sets up two transports in a new directory.
class Shm : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/shm-XXXXXX";
    directory_ = mkdtemp(name.data());
    make({});
  }
  void TearDown() override {
    server_.reset();
    client_.reset();
    fs::remove_all(directory_);
  }
  void make(shm::Options options) {
    options.keep_alive.idle_deadline = options.handshake_timeout = Limits().idle_deadline;
    server_ = shm::Transport::create(system_.env(), options, &server_end_, &job_).value();
    client_ = shm::Transport::create(system_.env(), options, &client_end_, &job_).value();
    path_ = server_->listen({directory_, 0}).value().host;
  }
  void poll_both() {
    client_->poll(absl::Milliseconds(1));
    server_->poll(absl::Milliseconds(1));
  }
  bool poll_until(const std::function<bool()>& done) {
    for (const absl::Time end = absl::Now() + absl::Minutes(1); absl::Now() < end && !done();) poll_both();
    return done();
  }
  std::pair<Connection*, Connection*> connected() {
    const size_t before = server_end_.connections.size();
    if (!client_->connect({path_, 0}, connect_options(job_)).ok()) return {nullptr, nullptr};
    const bool up =
        poll_until([&] { return server_end_.connections.size() > before && client_end_.connections.size() > before; });
    if (!up) return {nullptr, nullptr};
    return {client_end_.connections.back(), server_end_.connections.back()};
  }
  // Returns a peer that has done the handshake, but has not offered a segment.
  std::unique_ptr<ShmPeer> greeted() {
    auto peer = std::make_unique<ShmPeer>(path_);
    EXPECT_TRUE(peer->greet(job_.secret, [this] { server_->poll(absl::Milliseconds(1)); }));
    return peer;
  }
  // Returns a peer whose connection is up.
  std::unique_ptr<ShmPeer> up() {
    auto peer = greeted();
    peer->offer();
    EXPECT_TRUE(poll_until([&] { return server_end_.connections.size() == 1; }));
    return peer;
  }
  // Expects that the peer is closed with a message that contains `part`, that its memory is freed, and that other peers
  // can still connect.
  void expect_closed(const std::string& part) {
    ASSERT_TRUE(poll_until([&] { return server_end_.closed.size() == 1; }));
    EXPECT_THAT(std::string(server_end_.closed[0].message()), HasSubstr(part));
    EXPECT_EQ(server_->memory_bytes(), 0u);
    EXPECT_TRUE(server_end_.received.empty());
    EXPECT_NE(connected().first, nullptr);
  }
  static wire::Header push(size_t payload_bytes) {
    wire::Header header;
    header.type = wire::FrameType::kPush;
    header.job = kJob;
    wire::seal_unchecked(header, payload_bytes);
    return header;
  }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  OneJob job_;
  End client_end_;
  End server_end_;
  std::string directory_;
  std::string path_;
  std::unique_ptr<shm::Transport> client_;
  std::unique_ptr<shm::Transport> server_;
};

TEST_F(Shm, TheWrongSecretGetsNoMemory) {
  ShmPeer peer(path_);
  wire::ClientHandshake client(kJob, 3, {9, 9}, wire::Nonce{4});
  peer.send(client.hello());
  const auto poll = [this] { server_->poll(absl::Milliseconds(1)); };
  const auto challenge = peer.receive(poll);
  ASSERT_TRUE(challenge.has_value());
  wire::Header header;
  std::memcpy(&header, challenge->first.data(), sizeof(header));
  const auto proof = client.on_frame(header, std::as_bytes(std::span(challenge->first)).subspan(sizeof(header)));
  ASSERT_TRUE(proof.ok());
  peer.send(proof->at(0));
  int packets = 0;
  while (const auto packet = peer.receive(poll)) {
    ++packets;
    EXPECT_FALSE(packet->second.valid()) << "the refused peer got a descriptor";
  }
  EXPECT_EQ(packets, 1) << "the refusal";
  expect_closed("wrong secret");
}

TEST_F(Shm, PeersCannotWriteToOrShrinkOurSegment) {
  const auto peer = greeted();
  const int file = peer->offered().get();
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  EXPECT_NE(ftruncate(file, 0), 0);
  EXPECT_NE(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  EXPECT_NE(pwrite(file, "x", 1, 0), 1);
}

TEST_F(Shm, MemoryIsLimited) {
  server_.reset();
  shm::Options options;
  options.most_memory = options.ring_bytes * 3 / 2;
  make(options);
  ASSERT_NE(connected().first, nullptr);
  ASSERT_TRUE(client_->connect({path_, 0}, connect_options(job_)).ok());
  ASSERT_TRUE(poll_until([&] { return client_end_.closed.size() == 1; }));
  EXPECT_THAT(std::string(client_end_.closed[0].message()), HasSubstr("no more than"));
}

Descriptor memory_file(size_t bytes, int seals) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kFutureWrite = 0x10;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | kFutureWrite;

TEST_F(Shm, AMalformedOfferIsRefused) {
  const auto good = [] { return memory_file(1 << 20, kAllSeals); };
  const auto pipe_end = [] {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    close(ends[1]);
    return Descriptor(ends[0]);
  };
  struct Case {
    shm::Offer offer;
    std::function<Descriptor()> file;
    std::string part;
  };
  const std::vector<Case> cases = {
      {{.ring_bytes = 65'536}, [] { return memory_file(1 << 20, F_SEAL_SHRINK); }, "not sealed"},
      {{.ring_bytes = 65'536}, [] { return memory_file(1 << 20, kAllSeals & ~F_SEAL_SHRINK); }, "not sealed"},
      {{.ring_bytes = 65'536}, [] { return memory_file(1 << 20, kAllSeals & ~kFutureWrite); }, "not sealed"},
      {{.ring_bytes = 65'536}, [] { return memory_file(4096, kAllSeals); }, "4096 bytes of shared memory"},
      {{.ring_bytes = 65'536}, [] { return memory_file(size_t{1} << 40, kAllSeals); }, "bytes of shared memory"},
      {{.ring_bytes = 65'536}, pipe_end, "not a memory file"},
      {{.ring_bytes = 1 << 20}, good, "in a file for"},
      {{.ring_bytes = 1000}, good, "in a file for"},
      {{.ring_bytes = 0}, good, "in a file for"},
      {{.ring_bytes = ~uint64_t{63}}, good, "in a file for"},
      {{.version = 7, .ring_bytes = 65'536}, good, "version 7"},
      {{.magic = 7, .ring_bytes = 65'536}, good, "same release"},
  };
  for (const Case& what : cases) {
    const auto peer = greeted();
    const Descriptor file = what.file();
    peer->send(std::as_bytes(std::span(&what.offer, 1)), file.get());
    expect_closed(what.part);
    client_end_.connections.at(0)->close(absl::OkStatus());
    ASSERT_TRUE(poll_until([&] { return server_end_.closed.size() == 2 && client_end_.closed.size() == 1; }));
    server_end_.closed.clear();
    client_end_.closed.clear();
  }
}

TEST_F(Shm, AnOfferOfAnotherSizeIsRefused) {
  const auto peer = greeted();
  peer->send(std::as_bytes(std::span("GLNS", 4)), memory_file(1 << 20, kAllSeals).get());
  expect_closed("bytes instead of 16");
}

TEST_F(Shm, AFrameInsteadOfAnOfferIsRefused) {
  const auto peer = greeted();
  peer->send({push(0), {}});
  expect_closed("before the handshake is done");
}

TEST_F(Shm, InvalidPositionsEndTheConnection) {
  const auto set = [this](const std::function<void(ShmPeer&)>& scribble, const std::string& part) {
    server_.reset();
    server_end_.closed.clear();
    server_end_.connections.clear();
    client_end_.closed.clear();
    shm::Options options;
    options.keep_alive.ping_after = absl::Milliseconds(50);  // a server reads a silent peer's ring after this time
    make(options);
    const auto peer = up();
    scribble(*peer);
    peer->send(std::as_bytes(std::span("!", 1)));
    if (!server_end_.connections.empty()) {
      Buffer payload = server_end_.pool.take(1000);
      server_end_.connections[0]->send(push(1000), payload);
      for (int i = 0; i < 5 && server_end_.closed.empty(); ++i) poll_both();
      for (int i = 0; i < 3'000 && server_end_.closed.empty(); ++i) {
        server_end_.connections[0]->send(push(1000), payload);
        poll_both();
      }
    }
    expect_closed(part);
  };
  const std::string invalid = "is not valid";
  set([](ShmPeer& peer) { peer.control().written = ~uint64_t{0}; }, invalid);
  set([](ShmPeer& peer) { peer.control().written = (64 << 10) + 64; }, invalid);
  set([](ShmPeer& peer) { peer.control().written = 17; }, invalid);
  set([](ShmPeer& peer) { peer.control().taken = uint64_t{1} << 40; }, invalid);
  set([](ShmPeer& peer) { peer.control().written = 640; }, "another protocol");  // the header is all zeros
}

TEST_F(Shm, ADamagedHeaderIsRefused) {
  const auto peer = up();
  wire::Header header = push(1000);
  header.payload_bytes = 4000;
  peer->write(header, std::vector<std::byte>(1000));
  expect_closed("checksum");
}

TEST_F(Shm, AHandshakeFrameInTheRingIsRefused) {
  const auto peer = up();
  wire::Header header;
  header.type = wire::FrameType::kHello;
  wire::seal_unchecked(header, 32);
  peer->write(header, std::vector<std::byte>(32));
  expect_closed("HELLO frame after the handshake");
}

TEST_F(Shm, AnUnexpectedPacketIsRefused) {
  const auto peer = up();
  peer->send(std::as_bytes(std::span("xyz", 3)));
  expect_closed("expected a wake-up");
}

// A peer writes random bytes into its memory. The server must not crash and must serve other peers.
TEST_F(Shm, RandomWritesDoNoHarm) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto peer = up();
    Connection& connection = *server_end_.connections.at(0);
    const Buffer payload = server_end_.pool.take(30'000);
    for (int i = 0; i < 40 && server_end_.closed.empty(); ++i) {
      connection.send(push(payload.size()), payload);
      if (random() % 2 == 0) peer->write(push(random() % 500), std::vector<std::byte>(random() % 500));
      const size_t reach = random() % 4 == 0 ? peer->memory().size() : sizeof(shm::Control) + 4096;
      for (int j = 0; j < 8; ++j) peer->memory()[random() % reach] = static_cast<std::byte>(random());
      if (random() % 4 == 0) peer->control().written = random() % (80 << 10);
      if (random() % 4 == 0) peer->control().taken = random() % (80 << 10);
      server_->poll(absl::ZeroDuration());
    }
    if (server_end_.closed.empty()) connection.close(absl::OkStatus());
    ASSERT_TRUE(poll_until([&] { return server_end_.closed.size() == 1; }));
    server_end_.closed.clear();
    server_end_.received.clear();
    EXPECT_EQ(server_->memory_bytes(), 0u);
  }
  EXPECT_NE(connected().first, nullptr);
}

// Runs `what` in a child process, which is killed when the object is destroyed.
class Child {
 public:
  explicit Child(const std::function<void()>& what) : pid_(fork()) {
    if (pid_ != 0) return;
    what();
    _exit(0);
  }
  ~Child() { kill_it(); }
  void kill_it() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST_F(Shm, FramesOfOthersArriveDuringRandomWrites) {
  server_end_.keep_frames = false;
  const Child scribbler([this] {
    for (uint64_t seed = 1;; ++seed) {
      std::mt19937_64 random(seed);
      ShmPeer peer(path_);
      if (!peer.greet(job_.secret, [] {})) continue;
      peer.offer();
      for (int i = 0; i < 3000; ++i) {
        peer.memory()[random() % (sizeof(shm::Control) + 8192)] = static_cast<std::byte>(random());
        if (i % 100 == 0) peer.write(push(100), std::vector<std::byte>(100));
      }
    }
  });
  const Buffer payload = server_end_.pool.take(5'000);
  EXPECT_TRUE(poll_until([&] {
    for (Connection* connection : server_end_.connections) connection->send(push(payload.size()), payload);
    return server_end_.closed.size() >= 20;
  }));
}

TEST_F(Shm, AServerDiesWithinAFrame) {
  server_.reset();
  Child server([this] {
    make({});
    std::ofstream(directory_ + "/path.tmp") << path_;
    fs::rename(directory_ + "/path.tmp", directory_ + "/path");
    const Buffer payload = server_end_.pool.take(4 << 20);
    for (;;) {
      for (Connection* connection : server_end_.connections) {
        while (connection->queued_bytes() < (64u << 20)) connection->send(push(payload.size()), payload);
      }
      server_->poll(absl::Milliseconds(1));
    }
  });
  while (!fs::exists(directory_ + "/path")) absl::SleepFor(absl::Milliseconds(5));
  std::ifstream(directory_ + "/path") >> path_;
  client_end_.keep_frames = false;
  size_t frames = 0;
  client_end_.when_frame = [&](Connection&, const wire::Header&) { ++frames; };
  ASSERT_TRUE(client_->connect({path_, 0}, connect_options(job_)).ok());
  while (frames < 10) client_->poll(absl::Milliseconds(1));
  server.kill_it();
  while (client_end_.closed.empty()) client_->poll(absl::Milliseconds(1));
  ASSERT_EQ(client_end_.closed.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(client_end_.closed[0])) << client_end_.closed[0];
  EXPECT_EQ(client_->memory_bytes(), 0u);
}

TEST_F(Shm, AClientDiesWithinAFrame) {
  size_t headers = 0;
  server_end_.when_header = [&](Connection&, const wire::Header&) { ++headers; };
  Child client([this] {
    ShmPeer peer(path_);
    if (!peer.greet(job_.secret, [] {})) return;
    peer.offer();
    peer.write(push(100), std::vector<std::byte>(100));
    const wire::Header header = push(10'000);
    peer.writer().append(std::as_bytes(std::span(&header, 1)));
    peer.writer().append(std::vector<std::byte>(6400));
    (void)peer.writer().publish();
    peer.send(std::as_bytes(std::span("!", 1)));
    pause();
  });
  ASSERT_TRUE(poll_until([&] { return headers == 2; }));
  client.kill_it();
  ASSERT_TRUE(poll_until([&] { return server_end_.closed.size() == 1; }));
  EXPECT_THAT(std::string(server_end_.closed[0].message()), HasSubstr("closed by the peer"));
  EXPECT_EQ(server_end_.received.size(), 1u) << "only the complete frame is delivered";
  EXPECT_EQ(server_->memory_bytes(), 0u);
}

TEST_F(Shm, FramesWrittenBeforeAPeerLeftAreRead) {
  const auto peer = greeted();
  peer->offer(size_t{48} << 20);
  ASSERT_TRUE(poll_until([&] { return server_end_.connections.size() == 1; }));
  const std::vector<std::byte> payload(1 << 20);
  for (int i = 0; i < 40; ++i) peer->write(push(payload.size()), payload);  // more than many polls read
  peer->leave();
  ASSERT_TRUE(poll_until([&] { return server_end_.closed.size() == 1; }));
  EXPECT_EQ(server_end_.received.size(), 40u);
}

// Sends frames both ways between two threads, which sleep while they wait, and checks their order and payloads.
void exchange(const shm::Options& options, const std::string& directory, int rounds, size_t most) {
  SystemEnv system{LogOptions{"test", LogLevel::kOff}};
  OneJob job;
  End ends[2];
  std::unique_ptr<shm::Transport> transports[2];
  for (int i = 0; i < 2; ++i) {
    transports[i] = shm::Transport::create(system.env(), options, &ends[i], &job).value();
  }
  const Address address = transports[1]->listen({directory, 0}).value();
  ASSERT_TRUE(transports[0]->connect(address, connect_options(job)).ok());
  const auto run = [&](int who) {
    std::mt19937 random(static_cast<unsigned>(who));
    End& end = ends[who];
    while (end.connections.empty()) transports[who]->poll(absl::Seconds(10));
    for (int i = 0; i < rounds; ++i) {
      Buffer payload = end.pool.take(random() % 3 == 0 ? random() % most : random() % 200);
      std::fill(payload.bytes().begin(), payload.bytes().end(), static_cast<std::byte>(i));
      wire::Header header;
      header.type = wire::FrameType::kPush;
      header.step = static_cast<uint64_t>(i);
      end.connections[0]->send(header, payload);
      while (end.received.size() < static_cast<size_t>(i)) transports[who]->poll(absl::Seconds(10));
    }
    while (end.received.size() < static_cast<size_t>(rounds) || end.connections[0]->queued_bytes() > 0) {
      transports[who]->poll(absl::Seconds(10));
    }
    transports[who]->flush();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const End& end : ends) {
    ASSERT_EQ(end.received.size(), static_cast<size_t>(rounds));
    for (int i = 0; i < rounds; ++i) {
      const Received& got = end.received[static_cast<size_t>(i)];
      EXPECT_EQ(got.header.step, static_cast<uint64_t>(i));
      EXPECT_TRUE(std::all_of(got.payload.begin(), got.payload.end(),
                              [i](std::byte byte) { return byte == static_cast<std::byte>(i); }));
    }
  }
}

// If wake-ups were lost, each would cost the 50 ms of a tick, and the test would exceed its time limit.
TEST_F(Shm, NoWakeUpIsLost) {
  shm::Options options;
  options.spin = absl::ZeroDuration();
  options.ring_bytes = 60 << 10;
  exchange(options, directory_, 2000, 200'000);
}

TEST_F(Shm, SpinningChangesNothing) {
  shm::Options options;
  options.spin = absl::Milliseconds(1);
  options.ring_bytes = 60 << 10;
  exchange(options, directory_, 300, 200'000);
}

TEST_F(Shm, AnUnusableDirectoryIsAnErrorWithTheReason) {
  const auto listen = [this](const std::string& directory) { return client_->listen({directory, 0}).status(); };
  EXPECT_TRUE(absl::IsInvalidArgument(listen(directory_ + "/none"))) << listen(directory_ + "/none");
  std::ofstream(directory_ + "/file") << "x";
  EXPECT_TRUE(absl::IsInvalidArgument(listen(directory_ + "/file"))) << listen(directory_ + "/file");
  EXPECT_TRUE(absl::IsPermissionDenied(listen("/sys"))) << listen("/sys");
  const std::string deep = directory_ + "/" + std::string(100, 'd');
  fs::create_directory(deep);
  EXPECT_TRUE(absl::IsInvalidArgument(listen(deep))) << listen(deep);
  EXPECT_THAT(std::string(listen(deep).message()), HasSubstr("shorter"));
}

TEST_F(Shm, AFullDirectoryIsAnErrorWithTheReason) {
  constexpr int kSkipped = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) _exit(kSkipped);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(kSkipped);
    if (mount("none", directory_.c_str(), "tmpfs", 0, "nr_inodes=1") != 0) _exit(kSkipped);
    _exit(absl::IsResourceExhausted(client_->listen({directory_, 0}).status()) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "this process lacks the permission to mount";
  EXPECT_EQ(status, 0);
}

TEST_F(Shm, PathsOfDeadProcessesAreRemoved) {
  const auto make_path = [this](const std::string& name, bool old) {
    const std::string path = directory_ + "/" + name;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    if (old) fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(1));
    return std::pair(path, std::move(socket));
  };
  auto dead = make_path("gleaner-1.sock", true);
  auto young = make_path("gleaner-2.sock", false);
  auto others = make_path("other.sock", true);
  const auto alive = make_path("gleaner-3.sock", true);
  for (auto* gone : {&dead, &young, &others}) gone->second.reset();
  ASSERT_TRUE(client_->listen({directory_, 0}).ok());
  EXPECT_FALSE(fs::exists(dead.first));
  EXPECT_TRUE(fs::exists(young.first)) << "the owner may be about to listen";
  EXPECT_TRUE(fs::exists(others.first)) << "the file does not belong to Gleaner";
  EXPECT_TRUE(fs::exists(alive.first));
}

TEST_F(Shm, TheSocketIsForEveryUserAndRemovedAtTheEnd) {
  struct stat facts {};
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0666u);
  server_.reset();
  EXPECT_FALSE(fs::exists(path_));
}

// Returns the number of open descriptors of this process.
size_t descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Returns the number of shm segments that this process maps.
size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("gleaner-shm") != std::string::npos;
  return count;
}

TEST_F(Shm, DescriptorsAndMappingsEndWithTheConnection) {
  const size_t before = descriptors();
  ASSERT_EQ(mappings(), 0u);
  for (int i = 0; i < 5; ++i) {
    const auto [client, server] = connected();
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(mappings(), 4u) << "each side maps its own and the peer's segment";
    EXPECT_EQ(descriptors(), before + 2) << "each side has one socket";
    EXPECT_GT(server_->memory_bytes(), size_t{1} << 20);
    (i % 2 == 0 ? client : server)->close(absl::OkStatus());
    const size_t expected = static_cast<size_t>(i) + 1;
    ASSERT_TRUE(
        poll_until([&] { return server_end_.closed.size() == expected && client_end_.closed.size() == expected; }));
    EXPECT_EQ(mappings(), 0u);
    EXPECT_EQ(descriptors(), before);
    EXPECT_EQ(server_->memory_bytes() + client_->memory_bytes(), 0u);
  }
}

TEST_F(Shm, HugePagesAreUsedIfAvailable) {
  std::ifstream facts("/proc/meminfo");
  size_t free = 0;
  for (std::string word; facts >> word;) {
    if (word == "HugePages_Free:") facts >> free;
  }
  const auto segment = shm::Segment::create(1 << 20, true);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(segment->is_huge(), free > 0);
  EXPECT_GE(segment->memory().size(), size_t{1} << 20);
}

}  // namespace
}  // namespace gleaner::transport
