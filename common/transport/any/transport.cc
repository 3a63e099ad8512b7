#include "common/transport/any/transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::any {
namespace {

// Of turns in which others have something to do, one in so many also looks for what came by TCP.
constexpr uint32_t kTurnsWithoutTcp = 8;

}  // namespace

absl::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::kStart:
      return "start";
    case Reason::kConnect:
      return "connect";
    case Reason::kBroke:
      return "broke";
  }
  return "unknown";
}

Transport::Transport(const Env& env, Preferences preferences, Handler* handler)
    : env_(env), preferences_(std::move(preferences)), handler_(handler) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const std::vector<Option>& options,
                                                             const Preferences& preferences, Handler* handler) {
  auto transport = std::unique_ptr<Transport>(new Transport(env, preferences, handler));
  GLN_RETURN_IF_ERROR(transport->open(options));
  return transport;
}

absl::Status Transport::open(const std::vector<Option>& options) {
  const auto option_of = [&](Kind kind) {
    const auto found =
        std::find_if(options.begin(), options.end(), [kind](const Option& option) { return option.kind == kind; });
    return found == options.end() ? Option{kind, nullptr, "", ""} : *found;
  };
  for (const Kind kind : preferences_.kinds) GLN_RETURN_IF_ERROR(add(option_of(kind)));
  if (find(Kind::kTcp) == nullptr) {
    GLN_RETURN_IF_ERROR(add(option_of(Kind::kTcp)));
    inners_.back()->wanted = false;
  }
  tell_missing();
  tcp_ = find(Kind::kTcp)->transport.get();
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr || inner->transport.get() == tcp_ || inner->transport->descriptor() < 0) continue;
    GLN_RETURN_IF_ERROR(tcp_->watch_beside(inner->transport->descriptor(), &inner->ready));
  }
  return absl::OkStatus();
}

absl::Status Transport::add(const Option& option) {
  Inner& inner = *inners_.emplace_back(std::make_unique<Inner>(this, option));
  auto made = option.make ? option.make(&inner) : absl::UnimplementedError("this build of gleaner does not have it");
  if (!made.ok()) return do_without(inner, made.status());
  inner.transport = *std::move(made);
  return absl::OkStatus();
}

absl::Status Transport::do_without(Inner& inner, const absl::Status& why) {
  const Kind kind = inner.option.kind;
  inner.transport.reset();  // and its descriptor leaves epoll with it
  inner.ready = false;
  inner.unusable = why;
  absl::Status failure(why.code(), absl::StrCat("transport ", name_of(kind), ": ", why.message()));
  const size_t place = rank(kind);
  const bool is_last = place + 1 == preferences_.kinds.size();
  if (kind == Kind::kTcp || (is_last && preferences_.forced())) return failure;
  const bool is_nothing_new = absl::IsNotFound(why) || absl::IsUnimplemented(why);
  inner.missed = !is_nothing_new || preferences_.named;
  return absl::OkStatus();
}

// Of those that are missed, once it is known what takes their place.
void Transport::tell_missing() {
  for (auto inner = inners_.begin(); inner != inners_.end(); ++inner) {
    if (!std::exchange((*inner)->missed, false)) continue;
    const auto is_usable = [](const auto& other) { return other->wanted && other->transport != nullptr; };
    auto next = std::find_if(inner, inners_.end(), is_usable);
    if (next == inners_.end()) next = std::find_if(inners_.begin(), inner, is_usable);
    if (next == inner) continue;
    const Kind from = (*inner)->option.kind, to = (*next)->option.kind;
    env_.log->warning("transport can't be used; going on without it", "transport", name_of(from), "next", name_of(to),
                      "reason", (*inner)->unusable.message());
    count(from, to, Reason::kStart);
  }
}

void Transport::count(Kind from, Kind to, Reason why) {
  ++counters_.fallbacks[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(why)];
}

Transport::Inner* Transport::find(Kind kind) const {
  for (const auto& inner : inners_) {
    if (inner->option.kind == kind) return inner.get();
  }
  return nullptr;
}

size_t Transport::rank(Kind kind) const {
  const auto& kinds = preferences_.kinds;
  return static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  Inner& tcp = *find(Kind::kTcp);
  GLN_ASSIGN_OR_RETURN(tcp.address, tcp.transport->listen(address));
  for (const auto& inner : inners_) {
    if (inner.get() == &tcp || inner->transport == nullptr) continue;
    const bool in_directory = inner->option.kind == Kind::kShm;
    auto where = inner->transport->listen(in_directory ? Address{inner->option.directory, 0} : tcp.address);
    if (where.ok()) {
      inner->address = *std::move(where);
    } else {
      GLN_RETURN_IF_ERROR(do_without(*inner, where.status()));
    }
  }
  tell_missing();
  return tcp.address;
}

std::vector<Endpoint> Transport::endpoints(const std::string& advertise) const {
  std::vector<Endpoint> told;
  for (const auto& inner : inners_) {
    if (!inner->wanted || inner->transport == nullptr || inner->address.host.empty()) continue;
    told.push_back({inner->option.kind, inner->option.host, inner->address});
    if (!advertise.empty() && inner->option.kind != Kind::kShm) told.back().address.host = advertise;
  }
  return told;
}

// As far as choose() goes by it.
std::vector<Endpoint> Transport::mine() const {
  std::vector<Endpoint> mine;
  for (const auto& inner : inners_) {
    if (inner->wanted && inner->transport != nullptr) mine.push_back({inner->option.kind, inner->option.host, {}});
  }
  return mine;
}

// --- time

bool Transport::is_ready() const {
  return std::any_of(inners_.begin(), inners_.end(), [](const auto& inner) { return inner->ready; });
}

bool Transport::pending() const {
  return std::any_of(inners_.begin(), inners_.end(),
                     [](const auto& inner) { return inner->transport != nullptr && inner->transport->pending(); });
}

void Transport::wait(absl::Duration timeout) {
  if (linger(timeout)) return;
  tcp_->wait(timeout);
}

bool Transport::linger(absl::Duration timeout) {
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr) continue;
    inner->ready |= inner->transport->linger(is_ready() ? absl::ZeroDuration() : timeout);
  }
  return is_ready();
}

void Transport::poll(absl::Duration timeout) {
  flush();
  if (!is_ready()) wait(pending() ? absl::ZeroDuration() : timeout);
  poll_inners();
  flush();  // what the callbacks of one have sent by another
}

void Transport::poll_inners() {
  const bool others_are_ready = is_ready();
  if (!others_are_ready || tcp_->pending() || ++turns_without_tcp_ % kTurnsWithoutTcp == 0) {
    tcp_->poll(absl::ZeroDuration());
  }
  for (const auto& inner : inners_) {
    if (inner->transport == nullptr || inner->transport.get() == tcp_) continue;
    if (std::exchange(inner->ready, false) || inner->transport->pending()) inner->transport->poll(absl::ZeroDuration());
  }
}

void Transport::flush() {
  for (const auto& inner : inners_) {
    if (inner->transport != nullptr) inner->transport->flush();
  }
}

void Transport::pace(double bits_per_second) {
  for (const auto& inner : inners_) {
    if (inner->transport != nullptr) inner->transport->pace(bits_per_second);
  }
}

AdapterCounters Transport::adapter_counters() const {
  AdapterCounters sum;
  for (const auto& inner : inners_) {
    if (inner->transport != nullptr) sum += inner->transport->adapter_counters();
  }
  return sum;
}

}  // namespace gleaner::transport::any
