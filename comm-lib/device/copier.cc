#include "comm-lib/device/copier.h"

#include <poll.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

constexpr std::chrono::milliseconds kCheckEvery{20};  // for a failure of the GPU, which tells nobody by itself
constexpr size_t kMostBehind = 8;                     // programs rarely use more streams for gradients

}  // namespace

absl::StatusOr<std::unique_ptr<Copier>> Copier::create(Device* device) {
  GLN_ASSIGN_OR_RETURN(auto completions, Completions::create());
  GLN_ASSIGN_OR_RETURN(ReportingStream to_host, ReportingStream::open(device, completions.get()));
  GLN_ASSIGN_OR_RETURN(ReportingStream to_device, ReportingStream::open(device, completions.get()));
  return std::unique_ptr<Copier>(new Copier(device, std::move(completions), std::move(to_host), std::move(to_device)));
}

absl::Status Copier::to_host(Address from, MutableBytes to, uint64_t tag) {
  GLN_RETURN_IF_ERROR(to_host_->copy_to_host(from, to));
  return to_host_.notify(tag);
}

absl::Status Copier::to_device(ConstBytes from, Address to, uint64_t tag) {
  GLN_RETURN_IF_ERROR(to_device_->copy_to_device(from, to));
  return to_device_.notify(tag);
}

absl::StatusOr<ReportingStream*> Copier::behind(const Access& access) {
  auto found = std::ranges::find(behind_, access.producer, &std::pair<CallerStream, ReportingStream>::first);
  if (found == behind_.end() && behind_.size() < kMostBehind) {
    GLN_ASSIGN_OR_RETURN(ReportingStream made, ReportingStream::open(device_, completions_.get()));
    behind_.emplace_back(access.producer, std::move(made));
    found = behind_.end() - 1;
  } else if (found == behind_.end()) {
    found = behind_.begin() + static_cast<ptrdiff_t>(static_cast<uintptr_t>(access.producer) / 64 % kMostBehind);
  }
  ReportingStream& stream = found->second;
  GLN_RETURN_IF_ERROR(stream->wait_for(*access.ready));
  return &stream;
}

absl::Status Copier::record_all(Event& event) {
  const auto follow = [&](ReportingStream& stream) -> absl::Status {
    GLN_RETURN_IF_ERROR(stream->record(event));
    return to_device_->wait_for(event);
  };
  GLN_RETURN_IF_ERROR(follow(to_host_));
  for (auto& [producer, stream] : behind_) GLN_RETURN_IF_ERROR(follow(stream));
  return to_device_->record(event);
}

absl::Status Copier::take(std::vector<uint64_t>& tags) {
  const size_t before = tags.size();
  completions_->take(tags);
  if (tags.size() > before || completions_->pending() == 0) return absl::OkStatus();
  const auto now = std::chrono::steady_clock::now();
  if (now - checked_ < kCheckEvery) return absl::OkStatus();
  checked_ = now;
  return check();
}

// A failure of the GPU shows on all streams.
absl::Status Copier::check() const { return to_device_.check(); }

bool Copier::has_unseen_work() const {
  return to_host_.has_unseen_work() || to_device_.has_unseen_work() ||
         std::ranges::any_of(behind_, [](const auto& each) { return each.second.has_unseen_work(); });
}

bool Copier::drain(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  std::vector<uint64_t> tags;
  while (true) {
    completions_->take(tags);
    if (!check().ok()) return true;
    if (completions_->pending() == 0) return !has_unseen_work();
    if (absl::Now() >= end) return false;
    pollfd descriptor{completions_->descriptor(), POLLIN, 0};
    ::poll(&descriptor, 1, static_cast<int>(kCheckEvery.count()));
  }
}

}  // namespace gleaner::device
