// Control: the coordinator of a simulated job and the members' streams to it. The coordinator is a real
// coordinator::Core; when it is lost, another one may take its place.
//
// A stream delivers the messages of each direction in order. When a stream breaks, its messages in flight are lost, and
// each end learns of the break after its own delay.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/core/core.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

// Returns a report with the times of messages that every rank measures. Processors are so fast that strategies differ
// in time by their messages' bytes and latencies, also with the simulation's small partitions.
coordinator::Report report_of_message_times();

class Control {
 public:
  // A member's end of a stream.
  class End {
   public:
    virtual ~End() = default;
    virtual void on_told(coordinator::StreamId stream, const coordinator::Message& message) = 0;
    virtual void on_broken(coordinator::StreamId stream, const absl::Status& why) = 0;
  };
  using Stream = coordinator::StreamId;
  using Core = coordinator::Core;
  using Say = std::function<void(Core& core, Stream stream, absl::Duration now, coordinator::Actions& actions)>;

  explicit Control(World* world);

  // Opens a stream to the present coordinator; returns 0 if there is none. `end` must live until the stream is closed
  // or on_broken() was called.
  Stream open(End* end);
  // Closes the member's end of a stream: its `end` is not called again.
  void close(Stream stream);
  // Sends a message to the coordinator. `what` calls the core when the message arrives.
  void say(Stream stream, Say what);
  // Breaks the stream's connection.
  void break_stream(Stream stream);

  // Calls the coordinator at once, as the program that runs it would (a launcher or the operator).
  void order(const std::function<void(Core& core, absl::Duration now, coordinator::Actions& actions)>& what);

  // Loses the coordinator; another takes its place some time later.
  void forget();
  // Loses the coordinator for good.
  void die();
  // Starts another coordinator at once. The old one and the streams to it live on for a while.
  void usurp();

  const Core& core() const { return *servers_.back()->core; }
  bool is_there() const { return there_; }
  uint32_t incarnations() const { return static_cast<uint32_t>(servers_.size()); }

 private:
  struct Server {
    std::unique_ptr<Core> core;
    bool dead = false;
    uint32_t told_epoch = 0;
  };
  struct Pipe {
    End* end = nullptr;  // null: the member closed it
    size_t server = 0;
    bool broken = false;
    Nanoseconds last_said = 0, last_told = 0;  // arrival of the last message to the coordinator, and to the member
    coordinator::Welcome welcome;              // the last one that the coordinator sent
  };

  void begin();
  void lose();
  void tick(size_t server);
  void act(size_t server, const std::function<void(Core&, coordinator::Actions&)>& what);
  void report_measured_times(Core& core, coordinator::Actions& actions) const;
  void model(size_t server, coordinator::ModelRequest request);
  void tell(Stream stream, const coordinator::Message& message);
  void repeat_welcome(const coordinator::Send& send);
  Nanoseconds delay(Nanoseconds& last);

  World* const world_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::map<Stream, Pipe> pipes_;
  Stream next_stream_ = 1;
  bool there_ = true;
};

}  // namespace gleaner::sim
