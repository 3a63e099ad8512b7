// EarlyFrames holds frames about calls that this worker has not made yet (calls.h), in the buffers in which they came.
//
// Limit. If this worker has made the group, the members that are ahead bound what waits. Frames of groups that it has
// not made may wait for ever: the program may never make them. So the bytes of each sender have a limit for all such
// groups: kMostUnmadeBytes, or 4 times the limit of a group's runs in flight (start_queue.h) if that is more.
//
// Pure. Belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

class EarlyFrames {
 public:
  static constexpr uint64_t kMostUnmadeBytes = uint64_t{256} << 20;  // headers included

  using Key = std::tuple<uint32_t, uint64_t, uint32_t>;  // Subject::tensor, number of the call, part
  struct Frame {
    wire::Header header;
    Buffer payload;
  };

  // Keeps a frame of a group that this worker has made.
  void add(const wire::Header& header, Buffer payload);
  // Keeps a frame of a group that it has not made. `group_limit`: of a group's runs in flight, in bytes. False: the
  // frame exceeds the limit of its sender.
  [[nodiscard]] bool add_unmade(const wire::Header& header, Buffer payload, uint64_t group_limit);
  // Records that this worker has made the group: its frames don't count in the limits any more. `subject`:
  // Subject::tensor of its calls.
  void on_made(uint32_t subject);
  // Takes the frames about a part, in the order in which they came.
  std::vector<Frame> take(const Key& part);
  // Return a frame about any part of a call, or about any call of a group. Null: there is none.
  const Frame* of_call(uint32_t subject, uint64_t number) const;
  const Frame* of_group(uint32_t subject) const;
  void clear();

 private:
  static uint64_t bytes_of(const Frame& frame) { return frame.payload.size() + wire::kHeaderBytes; }

  std::map<Key, std::vector<Frame>> frames_;
  std::map<uint32_t, uint64_t> unmade_bytes_;  // by sender
};

}  // namespace gleaner::executor
