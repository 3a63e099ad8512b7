#include "summation-service/service/transport_metrics.h"

#include <string>
#include <utility>

namespace gleaner::service {
namespace {

using transport::Kind;
using transport::any::Reason;

constexpr std::array kAll = {Kind::kInproc, Kind::kShm, Kind::kRdma, Kind::kTcp};
constexpr std::array kReasons = {Reason::kStart, Reason::kConnect, Reason::kBroke};

prometheus::Labels with(prometheus::Labels labels, const char* name, absl::string_view value) {
  labels[name] = std::string(value);
  return labels;
}

}  // namespace

TransportMetrics::TransportMetrics(prometheus::Registry& registry, prometheus::Labels labels,
                                   const transport::Preferences& preferences)
    : registry_(registry),
      labels_(std::move(labels)),
      registrations_(registry, labels_, "gleaner_transport_registrations_total",
                     "Registrations of memory with RDMA adapters. A job makes them in its first steps only."),
      copies_(registry, labels_, "gleaner_transport_copies_total",
              "Payloads copied before RDMA sent them, because their memory was not registered."),
      lanes_(registry, labels_, "gleaner_transport_lanes_total",
             "Ports, beside its first one, over which an RDMA connection was spread.") {
  for (const Kind kind : kAll) {
    connections_[static_cast<size_t>(kind)] =
        &metrics::add_gauge(registry, with(labels_, "transport", name_of(kind)), "gleaner_transport_connections",
                            "Connections that are up now, by transport.");
  }
  const auto& kinds = preferences.kinds;
  for (size_t from = 0; from < kinds.size(); ++from) {
    for (size_t to = from + 1; to < kinds.size(); ++to) {
      for (const Reason why : kReasons) fallback({kinds[from], kinds[to], why});
    }
  }
}

metrics::FollowingCounter& TransportMetrics::fallback(const Fallback& which) {
  const auto found = fallbacks_.find(which);
  if (found != fallbacks_.end()) return found->second;
  const auto& [from, to, why] = which;
  prometheus::Labels labels = with(labels_, "from", name_of(from));
  labels = with(with(std::move(labels), "to", name_of(to)), "reason", name_of(why));
  return fallbacks_
      .try_emplace(
          which, registry_, labels, "gleaner_transport_fallbacks_total",
          "Times that a worse transport replaced a better one, because the better one is not available on this machine "
          "(start), could not connect to a peer (connect), or broke repeatedly (broke).")
      .first->second;
}

void TransportMetrics::update(const transport::any::Counters& counters) {
  registrations_.follow(static_cast<double>(counters.adapters.registrations));
  copies_.follow(static_cast<double>(counters.adapters.copies));
  lanes_.follow(static_cast<double>(counters.adapters.lanes));
  for (const Kind kind : kAll) {
    connections_[static_cast<size_t>(kind)]->Set(counters.connections[static_cast<size_t>(kind)]);
  }
  for (const Kind from : kAll) {
    for (const Kind to : kAll) {
      for (const Reason why : kReasons) {
        const uint64_t count =
            counters.fallbacks[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(why)];
        if (count > 0) fallback({from, to, why}).follow(static_cast<double>(count));
      }
    }
  }
}

}  // namespace gleaner::service
