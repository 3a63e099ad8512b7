// Memory shared by the local ranks of a worker: an anonymous memory file that can't change its size, mapped in each.
// It is gone with the last process that maps it. Belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

class Segment {
 public:
  // A new one. ResourceExhausted: no address space or descriptors. Its pages are not there before reserve().
  static absl::StatusOr<std::unique_ptr<Segment>> create(size_t bytes);
  // What another rank made. InvalidArgument: not of this size, or not sealed.
  static absl::StatusOr<std::unique_ptr<Segment>> map(Descriptor file, size_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Gets memory for up to `most` bytes more, so that touching them can't fail; all of it is there when reserved() says
  // so. ResourceExhausted: the machine or the container has no more.
  absl::Status reserve(size_t most);
  bool reserved() const { return reserved_bytes_ == memory_.size(); }

  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }

  absl::StatusOr<Descriptor> duplicate() const;  // of the file, to hand on
  void close_file() { file_.reset(); }           // the mapping stays

 private:
  Segment(Descriptor file, MutableBytes memory) : file_(std::move(file)), memory_(memory) {}
  static absl::StatusOr<std::unique_ptr<Segment>> map_file(Descriptor file, size_t bytes);

  Descriptor file_;
  MutableBytes memory_;
  size_t reserved_bytes_ = 0;
};

}  // namespace gleaner::local
