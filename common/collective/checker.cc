#include "common/collective/checker.h"

#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"

namespace gleaner::collective {
namespace {

// The sets of contributions in each chunk of each rank, as bits.
class Contributions {
 public:
  explicit Contributions(const Schedule& schedule)
      : ranks_(schedule.ranks),
        chunks_(schedule.chunks),
        is_gathered_(schedule.postcondition == Postcondition::kAllGather),
        words_((ranks_ + 63) / 64),
        bits_(size_t{ranks_} * chunks_ * words_) {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
        if (is_gathered_ && chunk != rank) continue;
        of(rank, chunk)[rank / 64] |= uint64_t{1} << (rank % 64);
      }
    }
  }

  // Adds what `from` has to what `to` has. Returns a contribution that both have, or kNone.
  uint32_t add(uint32_t to, uint32_t from, uint32_t chunk) {
    uint64_t* sum = of(to, chunk);
    const uint64_t* added = of(from, chunk);
    for (size_t word = 0; word < words_; ++word) {
      if (const uint64_t both = sum[word] & added[word]; both != 0) return bit(word, both);
      sum[word] |= added[word];
    }
    return kNone;
  }
  void copy(uint32_t to, uint32_t from, uint32_t chunk) {
    const uint64_t* source = of(from, chunk);
    std::copy(source, source + words_, of(to, chunk));
  }
  // Returns a contribution that a chunk lacks, of those with which it should end, or kNone.
  uint32_t lacking(uint32_t rank, uint32_t chunk) {
    const uint64_t* has = of(rank, chunk);
    if (is_gathered_) return (has[chunk / 64] >> (chunk % 64) & 1) != 0 ? kNone : chunk;
    for (size_t word = 0; word < words_; ++word) {
      const uint64_t all = word + 1 == words_ && ranks_ % 64 != 0 ? (uint64_t{1} << (ranks_ % 64)) - 1 : ~uint64_t{0};
      if (const uint64_t lacks = all & ~has[word]; lacks != 0) return bit(word, lacks);
    }
    return kNone;
  }

  static constexpr uint32_t kNone = ~0u;

 private:
  uint64_t* of(uint32_t rank, uint32_t chunk) { return &bits_[(size_t{rank} * chunks_ + chunk) * words_]; }
  static uint32_t bit(size_t word, uint64_t bits) {
    return static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits));
  }

  const uint32_t ranks_, chunks_;
  const bool is_gathered_;
  const size_t words_;
  std::vector<uint64_t> bits_;
};

// Which operations happen before each rank's next one: vector clocks. A clock has the number of operations of each rank
// that happen before. Sends without a receive between them share one copy.
class Clocks {
 public:
  Clocks(uint32_t ranks, size_t messages) : of_rank_(ranks), of_message_(messages) {
    for (std::shared_ptr<Clock>& clock : of_rank_) clock = std::make_shared<Clock>(ranks, 0);
  }

  void send(const Message& message, uint32_t index) { of_message_[index] = of_rank_[message.from]; }
  void receive(const Message& message, uint32_t index) {
    std::shared_ptr<Clock>& own = of_rank_[message.to];
    if (own.use_count() > 1) own = std::make_shared<Clock>(*own);
    const std::shared_ptr<Clock> other = std::move(of_message_[index]);
    for (size_t rank = 0; rank < own->size(); ++rank) (*own)[rank] = std::max((*own)[rank], (*other)[rank]);
    (*own)[message.from] = std::max((*own)[message.from], message.send + 1);
  }
  // Returns whether an operation of `peer` happens before the next operation of `rank`, another rank.
  bool happens_before(uint32_t peer, uint32_t op, uint32_t rank) const { return (*of_rank_[rank])[peer] > op; }

 private:
  using Clock = std::vector<uint32_t>;
  std::vector<std::shared_ptr<Clock>> of_rank_;
  std::vector<std::shared_ptr<Clock>> of_message_;  // of messages under way
};

class Checker {
 public:
  Checker(const Schedule& schedule, const Messages& messages)
      : schedule_(schedule),
        messages_(messages),
        contributions_(schedule),
        clocks_(schedule.ranks, messages.all().size()),
        sent_(size_t{schedule.ranks} * schedule.chunks) {}

  absl::Status check() {
    GLN_RETURN_IF_ERROR(messages_.run(schedule_, [this](uint32_t rank, uint32_t op, uint32_t index) {
      const Message& message = messages_.all()[index];
      if (schedule_.programs[rank][op].kind == OpKind::kSend) return send(message, index);
      return receive(message, index);
    }));
    for (uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
      for (uint32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (const uint32_t lacks = contributions_.lacking(rank, chunk); lacks != Contributions::kNone) {
          return absl::InvalidArgumentError(
              absl::StrCat("rank ", rank, " ends without the contribution of rank ", lacks, " to chunk ", chunk));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status send(const Message& message, uint32_t index) {
    clocks_.send(message, index);
    for (uint32_t i = 0; i < message.slice.count; ++i) sent(message.from, message.slice.first + i).push_back(index);
    return absl::OkStatus();
  }

  // As a slice does not change while it is being sent, what the sender has now is what it sent.
  absl::Status receive(const Message& message, uint32_t index) {
    clocks_.receive(message, index);
    for (uint32_t i = 0; i < message.slice.count; ++i) {
      const uint32_t chunk = message.slice.first + i;
      GLN_RETURN_IF_ERROR(check_change(message, chunk));
      if (schedule_.programs[message.to][message.receive].kind == OpKind::kReceiveCopy) {
        GLN_RETURN_IF_ERROR(copy(message, chunk));
        continue;
      }
      if (schedule_.postcondition == Postcondition::kAllGather) return wrong(message, "would add, in an all-gather");
      const uint32_t twice = contributions_.add(message.to, message.from, chunk);
      if (twice == Contributions::kNone) continue;
      return wrong(message, absl::StrCat("would add the contribution of rank ", twice, " to chunk ", chunk, " twice"));
    }
    return absl::OkStatus();
  }

  // A copied chunk is handed out as it is, so it must be complete.
  absl::Status copy(const Message& message, uint32_t chunk) {
    const uint32_t lacks = contributions_.lacking(message.from, chunk);
    if (lacks != Contributions::kNone) {
      return wrong(message, absl::StrCat("would copy chunk ", chunk, " without the contribution of rank ", lacks));
    }
    contributions_.copy(message.to, message.from, chunk);
    return absl::OkStatus();
  }

  // Checks that the peers have received a chunk that this receive is going to change.
  absl::Status check_change(const Message& message, uint32_t chunk) {
    std::vector<uint32_t>& sent_before = sent(message.to, chunk);
    for (const uint32_t index : sent_before) {
      const Message& earlier = messages_.all()[index];
      if (clocks_.happens_before(earlier.to, earlier.receive, message.to)) continue;
      return wrong(message, absl::StrCat("may change chunk ", chunk, " while operation ", earlier.send,
                                         " still sends it to rank ", earlier.to));
    }
    sent_before.clear();
    return absl::OkStatus();
  }

  absl::Status wrong(const Message& message, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(describe(schedule_, message.to, message.receive), " ", what));
  }
  std::vector<uint32_t>& sent(uint32_t rank, uint32_t chunk) { return sent_[size_t{rank} * schedule_.chunks + chunk]; }

  const Schedule& schedule_;
  const Messages& messages_;
  Contributions contributions_;
  Clocks clocks_;
  std::vector<std::vector<uint32_t>> sent_;  // by rank, then chunk: messages sent since the chunk changed last
};

}  // namespace

absl::Status check(const Schedule& schedule) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  return Checker(schedule, messages).check();
}

}  // namespace gleaner::collective
