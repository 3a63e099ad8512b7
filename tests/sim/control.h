// The coordinator of a simulated job: a real core, replaced by another when it is lost, and the members' streams to it.
//
// A stream keeps the order of what is said on it, both ways. When it breaks, what is under way on it is lost, and both
// ends hear of it, each in its own time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "operator/coordinator/core.h"
#include "tests/sim/world.h"

namespace gleaner::sim {

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

  // To the coordinator that is there now; 0: there is none. `end` lives until it is closed or broken.
  Stream open(End* end);
  // Nothing comes from it any more.
  void close(Stream stream);
  void say(Stream stream, Say what);
  // Its connection breaks.
  void break_stream(Stream stream);

  // Whoever runs the coordinator says so.
  void order(const std::function<void(Core& core, absl::Duration now, coordinator::Actions& actions)>& what);

  // The coordinator is lost; another takes its place some time later.
  void forget();
  // The coordinator is lost, and no other ever comes.
  void die();
  // Another takes its place at once. The old one lives on, and with it the streams to it, for a while.
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
    End* end = nullptr;  // null: closed there
    size_t server = 0;
    bool broken = false;
    Nanoseconds last_said = 0, last_told = 0;
    coordinator::Welcome welcome;  // the last one
  };

  void begin();
  void lose();
  void tick(size_t server);
  void act(size_t server, const std::function<void(Core&, coordinator::Actions&)>& what);
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
