#include "comm-lib/session/in_flight_requests.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gleaner::session {

void InFlightRequests::open(Request request, uint32_t begin, uint32_t end, uint64_t offset, uint32_t factor) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(requests_.size()));
    requests_.emplace_back();
    free_.reserve(requests_.size());
    awaiting_release_.reserve(requests_.size());
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  requests_[index] = {true, begin, end, end - begin, offset, factor, std::move(request), {}};
  std::fill(request_of_.begin() + begin, request_of_.begin() + end, index);
  ++in_flight_;
  ++started_;
  if (begin == end) awaiting_release_.push_back(index);
}

Buffer InFlightRequests::input(uint32_t partition, uint64_t offset, uint64_t bytes) const {
  const RequestState& state = requests_[request_of_[partition]];
  return state.request.input.slice((offset - state.offset) * state.factor, bytes * state.factor);
}

bool InFlightRequests::is_in_place(uint32_t partition) const {
  const Request& request = requests_[request_of_[partition]].request;
  return request.output.data() == request.input.bytes().data();
}

void InFlightRequests::add_result(uint32_t partition, uint64_t offset, uint64_t bytes, const Buffer& result,
                                  bool is_delayed) {
  const uint32_t index = request_of_[partition];
  RequestState& state = requests_[index];
  if (is_delayed) {
    state.delayed.push_back({offset - state.offset, result.slice(0, bytes)});
  } else {
    std::memcpy(state.request.output.data() + (offset - state.offset), result.bytes().data(), bytes);
  }
  if (--state.missing == 0) awaiting_release_.push_back(index);
}

void InFlightRequests::complete(std::vector<Done>& done) {
  std::erase_if(awaiting_release_, [&](uint32_t index) {
    RequestState& state = requests_[index];
    if (!state.request.input.sole_owner()) return false;
    for (const DelayedResult& delayed : state.delayed) {
      std::memcpy(state.request.output.data() + delayed.offset, delayed.result.bytes().data(), delayed.result.size());
    }
    done.push_back({state.request.id, absl::OkStatus()});
    std::fill(request_of_.begin() + state.begin, request_of_.begin() + state.end, kNone);
    state = {};
    free_.push_back(index);
    --in_flight_;
    return true;
  });
}

void InFlightRequests::fail(const absl::Status& status, std::vector<Done>& done) {
  for (RequestState& state : requests_) {
    if (!state.active) continue;
    done.push_back({state.request.id, status});
    state = {};
  }
  in_flight_ = 0;
  awaiting_release_.clear();
}

}  // namespace gleaner::session
