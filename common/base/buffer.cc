#include "common/base/buffer.h"

#include <bit>
#include <cassert>
#include <new>

#include "common/base/block_size.h"

namespace gleaner {
namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

Buffer Buffer::borrow(MutableBytes memory) {
  auto* block = new Block{.memory = memory.data(), .capacity = memory.size()};
  return Buffer(block, memory);
}

Buffer Buffer::borrow_lasting(MutableBytes memory) {
  Buffer buffer = borrow(memory);
  buffer.block_->lasting = true;
  return buffer;
}

Buffer Buffer::borrow_part(MutableBytes part) const {
  assert(block_ != nullptr && part.data() >= data_.data() && part.data() + part.size() <= data_.data() + data_.size());
  Buffer buffer = borrow(part);
  buffer.block_->parent = root();
  ++buffer.block_->parent->references;
  return buffer;
}

Attachment* Buffer::attachment(uint64_t key) const {
  if (block_ == nullptr) return nullptr;
  Attachment* found = root()->attachments.get();
  while (found != nullptr && found->key() != key) found = found->next_.get();
  return found;
}

void Buffer::attach(std::unique_ptr<Attachment> attachment) const {
  assert(block_ != nullptr && this->attachment(attachment->key()) == nullptr);
  attachment->block_ = root();
  attachment->next_ = std::move(root()->attachments);
  root()->attachments = std::move(attachment);
}

void Attachment::remove() {
  std::unique_ptr<Attachment>* link = &block_->attachments;
  while (link->get() != this) link = &(*link)->next_;
  const std::unique_ptr<Attachment> self = std::move(*link);
  *link = std::move(self->next_);
}

Buffer Buffer::slice(size_t offset, size_t size) const {
  assert(offset + size <= data_.size());
  return Buffer(block_, data_.subspan(offset, size));
}

bool Buffer::sole_owner() const { return block_ == nullptr || block_->references == 1; }

void Buffer::release() {
  if (block_ != nullptr) release(std::exchange(block_, nullptr));
}

void Buffer::release(Block* block) {
  if (--block->references > 0) return;
  if (block->pool != nullptr) return block->pool->give_back(block);
  if (block->parent != nullptr) release(block->parent);
  delete block;
}

BufferPool::~BufferPool() {
  assert(bytes_in_use_ == 0);
  for (auto& blocks : free_) {
    for (Buffer::Block* block : blocks) {
      block->attachments.reset();  // before the memory, which they may use
      ::operator delete(block->memory, kPage);
      delete block;
    }
  }
}

Buffer BufferPool::take(size_t size) {
  if (size == 0) return {};
  assert(size <= kMaxBytes);
  const size_t capacity = block_size(size);
  static_assert(kSmallestBlock == size_t{1} << kSmallestClass);
  auto& blocks = free_[static_cast<size_t>(std::bit_width(capacity) - 1 - kSmallestClass)];
  if (blocks.empty()) {
    auto* memory = static_cast<std::byte*>(::operator new(capacity, kPage));
    blocks.push_back(new Buffer::Block{.memory = memory, .capacity = capacity, .pool = this});
    bytes_reserved_ += capacity;
  }
  Buffer::Block* block = blocks.back();
  blocks.pop_back();
  bytes_in_use_ += block->capacity;
  return Buffer(block, MutableBytes(block->memory, size));
}

void BufferPool::give_back(Buffer::Block* block) {
  bytes_in_use_ -= block->capacity;
  const int size_class = static_cast<int>(std::bit_width(block->capacity - 1)) - kSmallestClass;
  free_[static_cast<size_t>(size_class)].push_back(block);
}

}  // namespace gleaner
