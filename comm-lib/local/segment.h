// Segment is memory that the local ranks of a worker share: an anonymous memory file of fixed size, mapped in each
// process. It ends with the last process that maps it. Belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

class Segment {
 public:
  // Makes a new segment. reserve() gives memory to its pages. ResourceExhausted: no address space or no file descriptor
  // is left.
  static absl::StatusOr<std::unique_ptr<Segment>> create(size_t bytes);
  // Maps a segment that another rank has made and reserved. InvalidArgument: the file has another size or is not
  // sealed. Like create(), it leaves the file open.
  static absl::StatusOr<std::unique_ptr<Segment>> map(Descriptor file, size_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Reserves memory for up to `most` more bytes, so that touching them can't fail. All bytes are reserved when
  // reserved() returns true. ResourceExhausted: the machine or the container has no more memory.
  absl::Status reserve(size_t most);
  bool reserved() const { return reserved_bytes_ == memory_.size(); }

  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }

  absl::StatusOr<Descriptor> duplicate() const;  // of the file, for another rank
  int file() const { return file_.get(); }       // -1: closed
  void close_file() { file_.reset(); }           // the mapping stays

 private:
  Segment(Descriptor file, MutableBytes memory) : file_(std::move(file)), memory_(memory) {}
  static absl::StatusOr<std::unique_ptr<Segment>> map_file(Descriptor file, size_t bytes);

  Descriptor file_;
  MutableBytes memory_;
  size_t reserved_bytes_ = 0;
};

}  // namespace gleaner::local
