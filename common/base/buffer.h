// Reference-counted byte buffers, from a pool or around memory of the caller.
//
// A Buffer is a handle; its copies share one *block* of memory. A pool's blocks are page aligned and have power-of-two
// sizes. A block returns to its pool when its last handle is destroyed, so once warm, no memory is allocated. A
// *borrowed* block wraps memory that the caller owns. The caller keeps one handle, and may reuse the memory when
// sole_owner() of that handle is true again.
//
// Threads: a pool and all handles to its blocks belong to one thread at a time. The pool must outlive its blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/bytes.h"

namespace gleaner {

class BufferPool;

namespace buffer {
struct Block;
}

// Data that a module attaches to a block, such as the registration of the block's memory with a device. An attachment
// is destroyed together with the block's memory, or earlier by remove(). A pool's block keeps its attachments while it
// waits for reuse.
class Attachment {
 public:
  // `key` is a number that identifies the module. A block has at most one attachment per key.
  explicit Attachment(uint64_t key) : key_(key) {}
  virtual ~Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  void remove();  // destroys this object
  uint64_t key() const { return key_; }

 private:
  friend class Buffer;
  const uint64_t key_;
  buffer::Block* block_ = nullptr;
  std::unique_ptr<Attachment> next_;
};

namespace buffer {

struct Block {
  std::byte* memory = nullptr;
  size_t capacity = 0;
  uint32_t references = 0;
  BufferPool* pool = nullptr;  // null: borrowed
  bool lasting = false;        // borrowed memory that outlives its handles, see borrow_lasting()
  // For a borrow_part(): the block of the whole memory, to which this block holds a reference. Otherwise null.
  Block* parent = nullptr;
  std::unique_ptr<Attachment> attachments;
};

}  // namespace buffer

// A handle to a part of a block.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer& other) noexcept : block_(other.block_), data_(other.data_) { retain(); }
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), data_(std::exchange(other.data_, {})) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() { release(); }

  // Wraps memory of the caller, which must keep it alive until sole_owner() of the returned handle is true. Allocates a
  // Block.
  static Buffer borrow(MutableBytes memory);
  // Like borrow(), for memory that is in use for long, such as a job's gradients. Parts of it should be slices or
  // borrow_part()s of this one handle, so that they share its attachments.
  static Buffer borrow_lasting(MutableBytes memory);
  // Returns a buffer over a part of this buffer's memory, with a sole_owner() of its own. It holds a reference to this
  // buffer's block. Allocates a Block.
  Buffer borrow_part(MutableBytes part) const;

  MutableBytes bytes() const { return data_; }
  size_t size() const { return data_.size(); }
  bool empty() const { return data_.empty(); }

  // Returns a handle to a part of the same block, without a copy or an allocation. Needs offset + size <= this->size().
  Buffer slice(size_t offset, size_t size) const;

  // Returns true if no other handle shares the block, or if the Buffer is empty.
  bool sole_owner() const;

  // Returns all memory of the block, which is page aligned if the block belongs to a pool. Attachments may use this
  // memory as long as they live. For a borrow_part(), this function and those below refer to the whole block.
  MutableBytes block() const {
    return block_ == nullptr ? MutableBytes{} : MutableBytes(root()->memory, root()->capacity);
  }
  // Returns true if the block's memory outlives its handles: it belongs to a pool or is lasting.
  bool is_lasting() const { return block_ != nullptr && (root()->pool != nullptr || root()->lasting); }
  Attachment* attachment(uint64_t key) const;  // null: none
  // The block must not have an attachment with the same key yet.
  void attach(std::unique_ptr<Attachment> attachment) const;

 private:
  friend class BufferPool;
  using Block = buffer::Block;
  Buffer(Block* block, MutableBytes data) : block_(block), data_(data) { retain(); }
  // Returns the block that has the memory.
  Block* root() const { return block_->parent == nullptr ? block_ : block_->parent; }
  void retain() const {
    if (block_ != nullptr) ++block_->references;
  }
  void release();
  static void release(Block* block);

  Block* block_ = nullptr;
  MutableBytes data_;
};

// Allocates blocks and keeps them for reuse.
class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // Returns a buffer of exactly `size` bytes with unspecified contents. `size` is at most kMaxBytes; for 0 the buffer
  // is empty.
  Buffer take(size_t size);

  // Bytes in blocks that have handles, and bytes in all blocks of the pool, with and without handles.
  uint64_t bytes_in_use() const { return bytes_in_use_; }
  uint64_t bytes_reserved() const { return bytes_reserved_; }

  static constexpr size_t kMaxBytes = size_t{1} << 30;

 private:
  friend class Buffer;
  static constexpr int kSmallestClass = 12;  // one page
  static constexpr int kClasses = 19;        // 4 KiB ... 1 GiB
  void give_back(Buffer::Block* block);

  std::array<std::vector<Buffer::Block*>, kClasses> free_;
  uint64_t bytes_in_use_ = 0;
  uint64_t bytes_reserved_ = 0;
};

}  // namespace gleaner
