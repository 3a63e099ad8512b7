#include "common/netsim/flow_network.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/cost.h"
#include "common/netsim/hash.h"

namespace gleaner::netsim {
namespace {

// Events within this part of the time since the start happen at the same time: their difference is a rounding error.
constexpr double kSameTime = 1e-10;

std::vector<double> capacities(const topology::Topology& topology) {
  std::vector<double> bytes_per_second;
  bytes_per_second.reserve(topology.channel_count());
  for (uint32_t channel = 0; channel < topology.channel_count(); ++channel) {
    bytes_per_second.push_back(topology.bits_per_second(channel) / 8);
  }
  return bytes_per_second;
}

absl::Status check(const Conditions& conditions, const topology::Topology& topology) {
  for (const Background& flow : conditions.background) {
    const uint32_t hosts = topology.host_count();
    if (flow.from >= hosts || flow.to >= hosts || flow.from == flow.to) {
      return absl::InvalidArgumentError(absl::StrCat("a background flow from host ", flow.from, " to host ", flow.to,
                                                     "; give two different hosts below ", hosts));
    }
    if (!std::isfinite(flow.bits_per_second) || flow.bits_per_second <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a background flow has the rate ", flow.bits_per_second, "; give bits per second above 0"));
    }
  }
  for (const Failure& failure : conditions.failures) {
    if (failure.link >= topology.links().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("link ", failure.link, " can't fail; there are ", topology.links().size(), " links"));
    }
    if (!std::isfinite(failure.seconds) || failure.seconds < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a link fails at ", failure.seconds, " s; give seconds since the start, 0 or more"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FlowNetwork> FlowNetwork::make(const topology::Network& network, const Conditions& conditions) {
  GLN_RETURN_IF_ERROR(check(conditions, network.topology));
  FlowNetwork flows(network, conditions);
  for (const Background& flow : conditions.background) GLN_RETURN_IF_ERROR(flows.add_background(flow));
  GLN_RETURN_IF_ERROR(flows.fail_links(0));
  return flows;
}

FlowNetwork::FlowNetwork(const topology::Network& network, const Conditions& conditions)
    : topology_(network.topology),
      router_(network),
      rates_(capacities(network.topology)),
      seed_(conditions.seed),
      failures_(conditions.failures) {
  std::ranges::stable_sort(failures_, std::greater<>(), &Failure::seconds);
}

absl::Status FlowNetwork::add_background(const Background& background) {
  const uint32_t index = connect(background.from, background.to);
  connections_[index].limit = rates_.add_channel(background.bits_per_second / 8);
  GLN_RETURN_IF_ERROR(find_path(index));
  enter(index);
  return absl::OkStatus();
}

absl::Status FlowNetwork::find_path(uint32_t index) {
  Connection& connection = connections_[index];
  const uint64_t between = collective::flow_between(connection.from, connection.to);
  const uint64_t hash = seed_ == 0 ? between : mix(seed_, between);
  if (!router_.find(connection.from, connection.to, hash, connection.channels)) {
    return absl::UnavailableError(absl::StrCat("links failed, and from ", now_, " s on no path leads from host '",
                                               topology_.name(connection.from), "' to host '",
                                               topology_.name(connection.to), "'"));
  }
  connection.latency = 0;
  for (const uint32_t channel : connection.channels) connection.latency += topology_.latency_seconds(channel);
  return absl::OkStatus();
}

uint32_t FlowNetwork::connect(uint32_t from, uint32_t to, double weight, double window_bytes) {
  connections_.push_back({.from = from, .to = to, .weight = weight, .window = window_bytes});
  return static_cast<uint32_t>(connections_.size()) - 1;
}

absl::StatusOr<std::span<const uint32_t>> FlowNetwork::send(uint64_t id, uint32_t index, double bytes, uint64_t order) {
  Connection& connection = connections_[index];
  if (connection.channels.empty()) GLN_RETURN_IF_ERROR(find_path(index));
  std::vector<Message>& messages = connection.messages;
  const auto first = messages.begin() + static_cast<ptrdiff_t>(connection.window_end);
  auto place = messages.end();
  while (place > first && std::prev(place)->order > order) --place;
  messages.insert(place, {id, bytes, order});
  fill_window(connection);
  if (connection.flow == kNone) start_next(index);
  return connection.channels;
}

void FlowNetwork::fill_window(Connection& connection) {
  while (connection.window_end < connection.messages.size()) {
    const bool is_empty = connection.window_end == connection.next_message;
    const double bytes = (is_empty ? 0 : connection.in_window) + connection.messages[connection.window_end].bytes;
    if (!is_empty && bytes > connection.window) return;
    connection.in_window = bytes;
    ++connection.window_end;
  }
}

void FlowNetwork::end_message(Connection& connection) {
  const Message& message = connection.messages[connection.next_message++];
  arrive(message.id, now_ + connection.latency);
  connection.in_window -= message.bytes;
  fill_window(connection);
}

void FlowNetwork::start_next(uint32_t index) {
  Connection& connection = connections_[index];
  while (connection.has_message() && connection.messages[connection.next_message].bytes <= 0) end_message(connection);
  if (!connection.has_message()) {
    connection.messages.clear();
    connection.next_message = connection.window_end = 0;
    if (connection.flow != kNone) leave(connection);
    return;
  }
  connection.bytes = connection.messages[connection.next_message].bytes;
  connection.since = now_;
  if (connection.flow == kNone) {
    enter(index);
  } else {
    expect_ending(index);
  }
}

void FlowNetwork::enter(uint32_t index) {
  Connection& connection = connections_[index];
  std::vector<uint32_t> channels = connection.channels;
  if (connection.limit != kNone) channels.push_back(connection.limit);
  connection.flow = rates_.add(channels, connection.weight);
  connection.since = now_;
  connection.rate = 0;
  if (connection.flow >= connection_of_flow_.size()) connection_of_flow_.resize(connection.flow + 1);
  connection_of_flow_[connection.flow] = index;
  sending_ += connection.limit == kNone;
  dirty_ = true;
}

void FlowNetwork::leave(Connection& connection) {
  rates_.remove(connection.flow);
  connection.flow = kNone;
  ++connection.version;
  sending_ -= connection.limit == kNone;
  dirty_ = true;
}

void FlowNetwork::arrive(uint64_t id, double seconds) {
  arrivals_.push_back({seconds, arrival_count_++, id});
  std::ranges::push_heap(arrivals_, std::greater<>());
}

void FlowNetwork::settle(Connection& connection) const {
  connection.bytes = std::max(connection.bytes - connection.rate * (now_ - connection.since), 0.0);
  connection.since = now_;
}

void FlowNetwork::expect_ending(uint32_t index) {
  Connection& connection = connections_[index];
  endings_.push_back({now_ + connection.bytes / connection.rate, index, ++connection.version});
  std::ranges::push_heap(endings_, std::greater<>());
}

void FlowNetwork::update_rates() {
  if (!dirty_) return;
  dirty_ = false;
  ++events_;
  for (const uint32_t flow : rates_.update()) {
    const uint32_t index = connection_of_flow_[flow];
    Connection& connection = connections_[index];
    if (connection.limit != kNone) continue;
    settle(connection);
    connection.rate = rates_.rate(flow);
    expect_ending(index);
  }
  if (endings_.size() > 4 * sending_ + 64) forget_void_endings();
}

void FlowNetwork::forget_void_endings() {
  std::erase_if(endings_, [this](const Ending& ending) { return is_void(ending); });
  std::ranges::make_heap(endings_, std::greater<>());
}

double FlowNetwork::next_time() {
  while (!endings_.empty() && is_void(endings_.front())) {
    std::ranges::pop_heap(endings_, std::greater<>());
    endings_.pop_back();
  }
  double next = kNever;
  if (!endings_.empty()) next = std::min(next, endings_.front().seconds);
  if (!arrivals_.empty()) next = std::min(next, arrivals_.front().seconds);
  // A failure after the last message has no effect.
  if (!failures_.empty() && next != kNever) next = std::min(next, failures_.back().seconds);
  return next;
}

absl::StatusOr<bool> FlowNetwork::advance(std::vector<uint64_t>& arrived, double until_time) {
  update_rates();
  const double next = next_time();
  if (next == kNever && until_time == kNever) return false;
  now_ = std::max(now_, std::min(next, until_time));
  if (next > until_time) return true;
  const double until = now_ * (1 + kSameTime);
  end_messages(until);
  GLN_RETURN_IF_ERROR(fail_links(until));
  while (!arrivals_.empty() && arrivals_.front().seconds <= until) {
    arrived.push_back(arrivals_.front().id);
    std::ranges::pop_heap(arrivals_, std::greater<>());
    arrivals_.pop_back();
  }
  return true;
}

void FlowNetwork::end_messages(double until) {
  while (!endings_.empty() && endings_.front().seconds <= until) {
    const Ending ending = endings_.front();
    std::ranges::pop_heap(endings_, std::greater<>());
    endings_.pop_back();
    if (is_void(ending)) continue;
    Connection& connection = connections_[ending.connection];
    end_message(connection);
    start_next(ending.connection);
  }
}

absl::Status FlowNetwork::fail_links(double until) {
  if (failures_.empty() || failures_.back().seconds > until) return absl::OkStatus();
  for (; !failures_.empty() && failures_.back().seconds <= until; failures_.pop_back()) {
    router_.fail(failures_.back().link);
  }
  return reroute();
}

absl::Status FlowNetwork::reroute() {
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    const auto failed = [this](uint32_t channel) { return router_.has_failed(channel); };
    if (std::ranges::none_of(connection.channels, failed)) continue;
    connection.channels.clear();
    if (connection.flow == kNone) continue;
    settle(connection);
    leave(connection);
    GLN_RETURN_IF_ERROR(find_path(index));
    enter(index);
  }
  return absl::OkStatus();
}

}  // namespace gleaner::netsim
