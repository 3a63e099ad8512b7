#include "comm-lib/runtime/network.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr absl::Duration kTick = absl::Milliseconds(5);
constexpr absl::Duration kMeasureEvery = absl::Seconds(1);
// A CPU summer's silence shows within a second, and so does that it can't be reached.
constexpr transport::Patience kSummerPatience{absl::Milliseconds(200), absl::Milliseconds(850)};
constexpr absl::Duration kSummerTimeout = absl::Milliseconds(500);

// A frame's event, as one of `peer`'s.
void record(trace::Recorder& recorder, trace::Kind kind, const wire::Header& header, uint32_t peer) {
  recorder.record(kind, header.step, header.tensor, header.partition, peer, header.payload_bytes);
}

}  // namespace

Network::Network(const Env& env, const NetworkOptions& options, const kernels::Kernels* kernels,
                 trace::Recorder* recorder, Events* events)
    : env_(env),
      options_(options),
      job_(wire::job_number(options.job)),
      kernels_(kernels),
      recorder_(recorder),
      events_(events) {}

Network::~Network() {
  // Transports hold buffers of the pool, and so do session and engine.
  transport_.reset();
  to_summer_.reset();
  from_session_.reset();
  hub_.reset();
}

absl::StatusOr<std::unique_ptr<Network>> Network::create(const Env& env, const NetworkOptions& options,
                                                         const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                         Events* events) {
  auto network = std::unique_ptr<Network>(new Network(env, options, kernels, recorder, events));
  transport::Handler* const handler = network.get();
  network->hub_ = std::make_unique<transport::inproc::Hub>();
  network->to_summer_ = std::make_unique<transport::inproc::Transport>(network->hub_.get(), handler);
  network->from_session_ = std::make_unique<transport::inproc::Transport>(network->hub_.get(), handler);
  GLN_ASSIGN_OR_RETURN(network->transport_, transport::make_transport(env, options.transports, handler, network.get()));
  GLN_ASSIGN_OR_RETURN(network->address_, network->transport_->listen(options.listen));
  GLN_RETURN_IF_ERROR(network->from_session_->listen(network->address_).status());
  return network;
}

const wire::Secret* Network::find(uint64_t job) const { return welcomed_ && job == job_ ? &welcome_.secret : nullptr; }

void Network::on_welcome(const member::Welcome& welcome) {
  welcome_ = welcome;
  welcomed_ = true;
  prepared_ = nullptr;
  summer_ = std::make_unique<service::Summer>(env_, engine::Options{job_, welcome.member, options_.summer_memory_bytes},
                                              kernels_, &pool_, recorder_);
}

absl::Status Network::prepare(std::shared_ptr<const plan::Plan> plan) {
  if (summer_ == nullptr) return absl::FailedPreconditionError("this worker's session has failed");
  GLN_RETURN_IF_ERROR(summer_->prepare(plan));
  prepared_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status Network::commit(uint32_t epoch) {
  if (summer_ == nullptr || prepared_ == nullptr || prepared_->epoch != epoch) {
    return absl::FailedPreconditionError(absl::StrCat("told to commit epoch ", epoch, ", which was not prepared"));
  }
  GLN_RETURN_IF_ERROR(summer_->commit(epoch));
  if (session_ == nullptr) open_session();
  follow(*prepared_);
  GLN_RETURN_IF_ERROR(session_->apply(prepared_, now(), actions_));
  plan_ = std::move(prepared_);
  return absl::OkStatus();
}

void Network::open_session() {
  const session::Options options{job_, welcome_.member, options_.window_bytes};
  session_ = std::make_unique<session::Session>(options, &pool_);
}

// Who has which place under this plan. Connections are made in poll().
void Network::follow(const plan::Plan& plan) {
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    const plan::Member& what = plan.members[member];
    const bool is_new = member == owners_.size();
    if (is_new) owners_.emplace_back().member = member;
    Owner& owner = owners_[member];
    if (!is_new && owner.since == what.since && owner.here == what.is_here()) continue;
    if (!is_new) part(owner);
    owner.here = what.is_here();
    owner.since = what.since;
    owner.reported = false;
    owner.pause = kFirstPause;
    owner.last = absl::UnavailableError("not connected yet");
    owner.down_since = owner.retry_at = now();
  }
}

// Whoever had this place is no member any more.
void Network::part(Owner& owner) {
  if (transport::Connection* const connection = std::exchange(owner.connection, nullptr); connection != nullptr) {
    connection->close(absl::OkStatus());
  }
  if (std::exchange(owner.up, false)) session_->on_disconnected(owner.member);
}

void Network::set_ending() {
  if (session_ != nullptr) session_->set_ending();
}

void Network::connect(Owner& owner) {
  auto connection = dial(owner);
  if (connection.ok()) {
    owner.connection = *connection;
    return;
  }
  owner.last = connection.status();
  owner.retry_at = now() + owner.pause;
  owner.pause = std::min(owner.pause * 2, kLongestPause);
  // Time does not mend that there is no transport in common.
  if (absl::IsFailedPrecondition(owner.last) && !owner.reported) report_lost(owner, owner.last);
}

absl::StatusOr<transport::Connection*> Network::dial(Owner& owner) {
  transport::ConnectOptions options{job_, welcome_.member, welcome_.secret};
  options.context = &owner;
  if (is_own(owner)) return to_summer_->connect(address_, options);
  if (is_cpu_summer(owner)) options.patience = kSummerPatience;
  const plan::Member& member = plan_->members[owner.member];
  std::vector<transport::Endpoint> endpoints = transport::parse_endpoints(member.endpoints);
  if (member.endpoints.empty()) {
    GLN_ASSIGN_OR_RETURN(Address address, Address::parse(member.address));
    endpoints.push_back({transport::Kind::kTcp, "", std::move(address)});
  }
  return transport_->connect(absl::StrCat(plan_->member_name(owner.member), " at ", member.address), endpoints,
                             options);
}

void Network::on_connected(transport::Connection& connection) {
  if (connection.peer().accepted) {
    if (summer_ == nullptr) return connection.close(absl::UnavailableError("this worker's session has failed"));
    return summer_->on_connected(connection);
  }
  auto& owner = *static_cast<Owner*>(connection.context);
  if (owner.connection != &connection) return;  // of somebody who had this place
  owner.up = true;
  owner.reported = false;
  owner.pause = kFirstPause;
  session_->on_connected(owner.member, now(), actions_);
}

absl::StatusOr<Buffer> Network::on_header(transport::Connection&, const wire::Header& header) {
  return pool_.take(header.payload_bytes);
}

void Network::on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  if (connection.peer().accepted) {
    if (summer_ == nullptr) return connection.close(absl::UnavailableError("this worker's session has failed"));
    return summer_->on_frame(connection, header, std::move(payload));
  }
  const auto& owner = *static_cast<Owner*>(connection.context);
  if (owner.connection != &connection) return;  // of somebody who had this place
  const bool is_result = header.type == wire::FrameType::kResult;
  record(*recorder_, is_result ? trace::Kind::kResult : trace::Kind::kDeferred, header, owner.member);
  const absl::Status status = session_->on_frame(owner.member, header, std::move(payload), now(), actions_);
  if (!status.ok()) {
    env_.log->warning("summer broke the protocol", "summer", plan_->member_name(owner.member), "reason",
                      status.message());
    connection.close(status);
  }
}

void Network::on_closed(transport::Connection& connection, const absl::Status& status) {
  if (connection.context == nullptr) {
    if (summer_ != nullptr) summer_->on_closed(connection, status);
    return;
  }
  auto& owner = *static_cast<Owner*>(connection.context);
  if (owner.connection != &connection) return;
  owner.connection = nullptr;
  owner.last = status;
  owner.retry_at = now() + owner.pause;
  owner.pause = std::min(owner.pause * 2, kLongestPause);
  if (std::exchange(owner.up, false)) {
    // Its silence was time enough.
    const bool was_silent = is_cpu_summer(owner) && absl::IsDeadlineExceeded(status);
    owner.down_since = was_silent ? now() - kSummerTimeout : now();
    session_->on_disconnected(owner.member);
    env_.log->debug("connection to a summer broke", "summer", plan_->member_name(owner.member), "reason",
                    status.message());
  }
}

void Network::start(session::Request request) {
  const uint64_t id = request.id;
  const uint32_t tensor = request.tensor;
  if (recorder_->is_on() && session_ != nullptr) {
    recorder_->record(trace::Kind::kReady, session_->step(tensor, request.first), tensor, request.first);
  }
  const absl::Status status = session_->start(std::move(request), now(), actions_);
  if (!status.ok()) actions_.done.push_back({id, status});
}

void Network::fail(const absl::Status& status) {
  failed_ = true;
  // Frames in queues and contributions at the colocated summer may be users' memory: all that goes before any request
  // is reported done.
  for (Owner& owner : owners_) {
    if (owner.connection != nullptr) owner.connection->close(status);
  }
  transport_->poll(absl::ZeroDuration());
  to_summer_->poll(absl::ZeroDuration());
  from_session_->poll(absl::ZeroDuration());
  summer_.reset();
  if (session_ != nullptr) session_->fail(status, actions_);
  flush();
}

void Network::wait(absl::Duration timeout) { transport_->wait(timeout); }

void Network::advance() {
  flush();
  // In process, frames answer frames: a few rounds, and what is left goes on with the next poll.
  for (int round = 0; round < 4 && has_local_work(); ++round) {
    from_session_->poll(absl::ZeroDuration());
    to_summer_->poll(absl::ZeroDuration());
    flush();
  }
  transport_->flush();
}

void Network::poll() {
  flush();
  transport_->poll(absl::ZeroDuration());
  if (session_ != nullptr && now() - last_tick_ >= kTick) {
    last_tick_ = now();
    session_->on_tick(last_tick_, actions_);
    if (!failed_) tend_connections();
  }
  advance();
}

void Network::tend_connections() {
  for (Owner& owner : owners_) {
    if (owner.here && owner.connection == nullptr && now() >= owner.retry_at) connect(owner);
    if (failed_) return;
  }
  check_deadlines();
  if (now() >= measure_at_) measure_round_trip();
}

void Network::measure_round_trip() {
  measure_at_ = now() + kMeasureEvery;
  note_transports();
  round_trip_ = absl::ZeroDuration();
  for (const Owner& owner : owners_) {
    if (owner.up) round_trip_ = std::max(round_trip_, owner.connection->round_trip());
  }
  session_->set_round_trip(round_trip_);
}

void Network::check_deadlines() {
  const bool all_up =
      std::all_of(owners_.begin(), owners_.end(), [](const Owner& owner) { return owner.up || !owner.here; });
  if (all_up) return;
  const std::vector<uint32_t> waiting = session_->waiting_for();
  for (Owner& owner : owners_) {
    if (owner.up || !owner.here) continue;
    if (std::find(waiting.begin(), waiting.end(), owner.member) == waiting.end()) {
      // Nothing is due from it: whoever has done its part may leave before us.
      owner.down_since = now();
      continue;
    }
    const absl::Duration limit = is_cpu_summer(owner) ? kSummerTimeout : welcome_.deadline;
    if (owner.reported || now() - owner.down_since <= limit) continue;
    report_lost(owner, absl::UnavailableError(describe_loss(owner, limit)));
    if (failed_) return;
  }
}

// Another worker's can't be replaced: that ends the job.
void Network::report_lost(Owner& owner, const absl::Status& why) {
  owner.reported = true;
  events_->on_lost(owner.member, !is_cpu_summer(owner), why);
}

std::string Network::describe_loss(const Owner& owner, absl::Duration limit) const {
  const std::string last = absl::StrCat("while sums are due from it; last: ", owner.last.message());
  if (is_cpu_summer(owner)) return absl::StrCat("out of reach ", last);
  return absl::StrCat(plan_->member_name(owner.member), " at ", plan_->members[owner.member].address,
                      " is lost: out of reach for ", absl::FormatDuration(limit), " ", last);
}

void Network::flush() {
  // Sending may not call back, but a user of on_summed() may start the next request, which appends to actions_.
  while (!actions_.sends.empty() || !actions_.done.empty()) {
    std::swap(actions_, flushing_);
    for (session::Send& send : flushing_.sends) {
      Owner& owner = owners_[send.owner];
      if (!owner.up) continue;
      if (send.header.type == wire::FrameType::kPush)
        record(*recorder_, trace::Kind::kPushed, send.header, owner.member);
      owner.connection->send(send.header, std::move(send.payload));
    }
    flushing_.sends.clear();
    for (const session::Done& done : flushing_.done) events_->on_summed(done.id, done.status);
    flushing_.done.clear();
  }
}

bool Network::has_work() const { return transport_->pending() || has_local_work(); }

bool Network::has_local_work() const {
  return to_summer_->pending() || from_session_->pending() || !actions_.sends.empty() || !actions_.done.empty();
}

std::string Network::describe_transports() const {
  constexpr size_t kMost = 8;
  std::array<std::vector<std::string>, transport::kKinds> by_kind;
  for (const Owner& owner : owners_) {
    if (!owner.up) continue;
    const auto kind = is_own(owner) ? transport::Kind::kInproc
                                    : static_cast<const transport::any::Connection*>(owner.connection)->kind();
    by_kind[static_cast<size_t>(kind)].push_back(plan_->member_name(owner.member));
  }
  std::vector<std::string> parts;
  for (size_t kind = 0; kind < by_kind.size(); ++kind) {
    std::vector<std::string>& names = by_kind[kind];
    if (names.empty()) continue;
    const size_t more = names.size() - std::min(names.size(), kMost);
    names.resize(names.size() - more);
    parts.push_back(absl::StrCat(transport::name_of(static_cast<transport::Kind>(kind)), ": ",
                                 absl::StrJoin(names, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : ""));
  }
  return absl::StrJoin(parts, "; ");
}

void Network::note_transports() {
  if (!connected()) return;
  std::string now_used = describe_transports();
  if (now_used == noted_transports_) return;
  noted_transports_ = std::move(now_used);
  env_.log->info("connected", "transports", noted_transports_);
}

transport::any::Counters Network::transport_counters() const {
  transport::any::Counters counters = transport_->counters();
  for (const Owner& owner : owners_) {
    if (owner.up && is_own(owner)) ++counters.connections[static_cast<size_t>(transport::Kind::kInproc)];
  }
  return counters;
}

bool Network::connected() const {
  return session_ != nullptr &&
         std::all_of(owners_.begin(), owners_.end(), [](const Owner& owner) { return owner.up || !owner.here; });
}

bool Network::idle() const {
  return (session_ == nullptr || session_->idle()) && (summer_ == nullptr || summer_->idle());
}

std::string Network::describe_waiting() const {
  std::vector<std::string> names;
  for (const Owner& owner : owners_) {
    if (!owner.up && owner.here) {
      names.push_back(absl::StrCat(plan_->member_name(owner.member), " at ", plan_->members[owner.member].address, " (",
                                   owner.last.message(), ")"));
    }
  }
  if (names.empty() && session_ != nullptr) {
    for (uint32_t member : session_->waiting_for()) names.push_back(plan_->member_name(member));
  }
  return names.empty() ? "nobody" : absl::StrJoin(names, ", ");
}

}  // namespace gleaner::runtime
