#include "common/transport/rdma/port_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/transport/rdma/nearness.h"

namespace gleaner::transport::rdma {
namespace {

constexpr absl::Duration kAvoidFor = absl::Minutes(1);

double rate_of(const Port& port) { return static_cast<double>(std::max<uint64_t>(1, port.bits_per_second)); }

std::vector<uint64_t> rates_of(const std::vector<Port>& ports) {
  std::vector<uint64_t> rates;
  rates.reserve(ports.size());
  for (const Port& port : ports) rates.push_back(std::max<uint64_t>(1, port.bits_per_second));
  return rates;
}

}  // namespace

PortTable::PortTable(std::vector<Port> ports, std::vector<double> costs, bool named, IsActive is_active)
    : ports_(std::move(ports)),
      costs_(std::move(costs)),
      usable_bandwidths_(rdma::usable_bandwidths(rates_of(ports_), costs_, !named)),
      named_(named),
      is_active_(std::move(is_active)) {}

int PortTable::find(absl::string_view device, uint8_t number) const {
  const auto found = std::find_if(ports_.begin(), ports_.end(),
                                  [&](const Port& port) { return port.device == device && port.port == number; });
  return found == ports_.end() ? -1 : static_cast<int>(found - ports_.begin());
}

bool PortTable::allows(absl::string_view device) const {
  return !named_ ||
         std::any_of(ports_.begin(), ports_.end(), [device](const Port& port) { return port.device == device; });
}

PathEnd PortTable::path_end(size_t port) const {
  const Port& one = ports_[port];
  return {one.address, one.network_bits, one.is_ethernet, usable_bandwidths_[port]};
}

void PortTable::avoid(int port, const std::string& peer, absl::Duration now) {
  std::erase_if(avoided_, [now](const Avoided& one) { return one.until <= now; });
  avoided_.push_back({port, peer, now + kAvoidFor});
}

bool PortTable::is_avoided(int port, const std::string& peer, absl::Duration now) const {
  return std::any_of(avoided_.begin(), avoided_.end(),
                     [&](const Avoided& one) { return one.port == port && one.peer == peer && one.until > now; });
}

std::vector<int> PortTable::ports_to(const sockaddr_storage& target, const std::string& peer,
                                     const std::vector<size_t>& connections, absl::Duration now) const {
  const bool is_here =
      std::any_of(ports_.begin(), ports_.end(), [&](const Port& port) { return are_the_same(port.address, target); });
  if (!named_ && (ports_.size() < 2 || is_here)) return {kByRoute};
  using Rank = std::tuple<bool, int, double, double, size_t>;
  std::vector<Rank> ranks;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const PathEnd end = path_end(i);
    const int close = closeness(end, target);
    if (close < 0 || (!named_ && !is_in_network(end, target))) continue;
    const double load = static_cast<double>(connections[i] + 1) / rate_of(ports_[i]);  // with one more connection
    ranks.emplace_back(is_avoided(static_cast<int>(i), peer, now) || !is_usable(i), -close, costs_[i], load, i);
  }
  std::sort(ranks.begin(), ranks.end());
  if (!named_ && ranks.size() > 1) ranks.resize(1);
  std::vector<int> ports;
  ports.reserve(ranks.size() + 1);
  for (const Rank& rank : ranks) ports.push_back(static_cast<int>(std::get<size_t>(rank)));
  if (!named_ || ports.empty()) ports.push_back(kByRoute);
  return ports;
}

}  // namespace gleaner::transport::rdma
