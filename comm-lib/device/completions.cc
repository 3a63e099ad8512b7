#include "comm-lib/device/completions.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/base/slots.h"
#include "common/base/status_macros.h"
#include "common/base/waker.h"

namespace gleaner::device {

struct Completions::Entry {
  uint64_t tag = 0;
  uint32_t slot = 0;
  Entry* next = nullptr;         // the entry that arrived before this one
  std::shared_ptr<Inbox> inbox;  // set while the entry may arrive: the inbox outlives its Completions until then
};

struct Completions::Inbox {
  std::unique_ptr<Waker> waker;
  std::atomic<Entry*> arrived = nullptr;  // a list, the last one first
  Slots<Entry> entries;                   // belongs to the thread of the Completions
};

absl::StatusOr<std::unique_ptr<Completions>> Completions::create() {
  auto inbox = std::make_shared<Inbox>();
  GLN_ASSIGN_OR_RETURN(inbox->waker, Waker::create());
  return std::unique_ptr<Completions>(new Completions(std::move(inbox)));
}

Completions::Completions(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}
Completions::~Completions() = default;

int Completions::descriptor() const { return inbox_->waker->descriptor(); }
size_t Completions::pending() const { return inbox_->entries.in_use(); }

void* Completions::expect(uint64_t tag) {
  const uint32_t slot = inbox_->entries.take();
  Entry& entry = inbox_->entries[slot];
  entry.tag = tag;
  entry.slot = slot;
  entry.inbox = inbox_;
  return &entry;
}

void Completions::cancel(void* entry) {
  static_cast<Entry*>(entry)->inbox.reset();
  inbox_->entries.give_back(static_cast<Entry*>(entry)->slot);
}

void Completions::arrive(void* argument) {
  Entry* entry = static_cast<Entry*>(argument);
  // Once the entry is in the list, take() may reuse it.
  const std::shared_ptr<Inbox> inbox = std::move(entry->inbox);
  Entry* before = inbox->arrived.load(std::memory_order_relaxed);
  do {
    entry->next = before;
  } while (!inbox->arrived.compare_exchange_weak(before, entry, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (before == nullptr) inbox->waker->wake();
}

void Completions::take(std::vector<uint64_t>& tags) {
  inbox_->waker->clear();
  const size_t first = tags.size();
  for (Entry* entry = inbox_->arrived.exchange(nullptr, std::memory_order_acquire); entry != nullptr;) {
    Entry* const next = entry->next;
    tags.push_back(entry->tag);
    inbox_->entries.give_back(entry->slot);
    entry = next;
  }
  std::reverse(tags.begin() + static_cast<ptrdiff_t>(first), tags.end());
}

}  // namespace gleaner::device
