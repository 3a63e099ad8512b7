#include "tests/doubles/cuda/accesses.h"

#include <algorithm>

namespace gleaner::cuda_double {
namespace {

std::string text_of(const Access& access) {
  return std::string(access.is_write ? "the write to " : "the read of ") + (access.is_host ? "host" : "device") +
         " memory by operation " + std::to_string(access.position) + " of stream " + std::to_string(access.stream);
}

}  // namespace

void Clock::join(const Clock& other) {
  for (const auto& [stream, position] : other.ended_) ended_[stream] = std::max(ended_[stream], position);
}

bool Clock::covers(uint64_t stream, uint64_t position) const {
  const auto found = ended_.find(stream);
  return found != ended_.end() && found->second >= position;
}

void Accesses::add(const Access& access, const Clock& clock) {
  for (const Access& earlier : accesses_) {
    if (!earlier.range.overlaps(access.range) || !(earlier.is_write || access.is_write)) continue;
    if (!clock.covers(earlier.stream, earlier.position)) {
      find("unordered: " + text_of(access) + " does not wait for " + text_of(earlier));
    } else if (access.is_host && earlier.is_write && access.is_write) {
      find("overwritten: " + text_of(access) + " replaces the result of " + text_of(earlier));
    }
  }
  accesses_.push_back(access);
}

bool Accesses::touch(const Range& range) const {
  return std::any_of(accesses_.begin(), accesses_.end(),
                     [&](const Access& access) { return access.range.overlaps(range); });
}

void Accesses::forget(const Clock& host) {
  std::erase_if(accesses_, [&](const Access& access) { return host.covers(access.stream, access.position); });
}

}  // namespace gleaner::cuda_double
