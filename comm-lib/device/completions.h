// Completions tells one thread that work on streams has ended: a descriptor becomes readable, as an eventfd does, and
// take() returns the tags of that work. No thread spins or blocks, and once warm nothing is allocated.
//
//   stream->notify(completions, tag)    expect() makes an entry; the driver calls arrive(entry) in a thread of its own
//   poll(completions.descriptor())      becomes readable
//   completions.take(tags)              appends `tag`
//
// Threads: one thread calls everything but arrive(), which any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::device {

class Completions {
 public:
  // ResourceExhausted if no file descriptor is left.
  static absl::StatusOr<std::unique_ptr<Completions>> create();
  // Entries that have not arrived may arrive later, without effect.
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  int descriptor() const;
  // Makes the descriptor unreadable, and appends the tags that have arrived since the last call, oldest first.
  void take(std::vector<uint64_t>& tags);
  // Returns the number of entries that take() has not returned.
  size_t pending() const;

  // For implementations of Stream::notify(). expect() returns an entry, for one call of arrive(), or of cancel() if the
  // driver did not accept the entry.
  void* expect(uint64_t tag);
  void cancel(void* entry);
  // Has the type of CUhostFn, and does not call CUDA, as cuLaunchHostFunc() demands of host functions.
  static void arrive(void* entry);

 private:
  struct Entry;
  struct Inbox;
  explicit Completions(std::shared_ptr<Inbox> inbox);
  const std::shared_ptr<Inbox> inbox_;
};

}  // namespace gleaner::device
