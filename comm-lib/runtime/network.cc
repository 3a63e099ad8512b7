#include "comm-lib/runtime/network.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(5);
constexpr absl::Duration kMeasureEvery = absl::Seconds(1);
// These times detect the loss of a CPU summer within a second. The loss of another worker is detected within the job's
// deadline.
constexpr transport::KeepAlive kSummerKeepAlive{absl::Milliseconds(200), absl::Milliseconds(850)};

transport::KeepAlive keep_alive_of(absl::Duration deadline) {
  return {std::min(transport::KeepAlive().ping_after, deadline / 10), deadline};
}

// Records a frame to or from `peer`.
void record(trace::Recorder& recorder, trace::Kind kind, const wire::Header& header, uint32_t peer) {
  recorder.record(kind, header.step, header.tensor, header.partition, peer, header.payload_bytes);
}

}  // namespace

Network::Network(const Env& env, const NetworkOptions& options, const kernels::Kernels* kernels,
                 trace::Recorder* recorder, NetworkListener* listener)
    : env_(env),
      options_(options),
      job_(wire::job_number(options.job)),
      recorder_(recorder),
      listener_(listener),
      colocated_(env, {job_, options.summer_memory_bytes}, kernels, &pool_, recorder) {}

Network::~Network() = default;

absl::StatusOr<std::unique_ptr<Network>> Network::create(const Env& env, const NetworkOptions& options,
                                                         const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                         NetworkListener* listener) {
  auto network = std::unique_ptr<Network>(new Network(env, options, kernels, recorder, listener));
  transport::Handler* const handler = network.get();
  network->to_summer_ = std::make_unique<transport::inproc::Transport>(network->colocated_.hub(), handler);
  GLN_ASSIGN_OR_RETURN(network->transport_, transport::make_transport(env, options.transports, handler, network.get()));
  GLN_ASSIGN_OR_RETURN(network->address_, network->transport_->listen(options.listen));
  if (!options.advertise.empty()) network->address_.host = options.advertise;
  GLN_RETURN_IF_ERROR(network->colocated_.listen(network->address_));
  return network;
}

const wire::Secret* Network::find(uint64_t job) const { return welcomed_ && job == job_ ? &welcome_.secret : nullptr; }

// A repeated welcome may differ only in the number of summers. Then the colocated summer stays open, since other
// workers may have connected to it.
void Network::on_welcome(const control::Welcome& welcome) {
  const bool is_same = welcomed_ && welcome.member == welcome_.member && welcome.secret == welcome_.secret;
  welcome_ = welcome;
  welcomed_ = true;
  prepared_ = nullptr;
  if (!is_same || !colocated_.is_open()) colocated_.open(welcome.member);
}

absl::Status Network::prepare(std::shared_ptr<const plan::Plan> plan) {
  GLN_RETURN_IF_ERROR(colocated_.prepare(plan));
  prepared_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status Network::commit(uint32_t epoch) {
  if (!colocated_.is_open() || prepared_ == nullptr || prepared_->epoch != epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator committed the plan of epoch ", epoch, ", which this rank has not prepared"));
  }
  GLN_RETURN_IF_ERROR(colocated_.commit(epoch));
  if (session_ == nullptr) open_session();
  for (auto member = static_cast<uint32_t>(owners_.size()); member < prepared_->members.size(); ++member) {
    owners_.push_back({member, nullptr});
  }
  supervisor_->follow(prepared_, now(), supervised_);
  for (const supervision::Drop& dropped : std::exchange(supervised_.drops, {})) drop(dropped);
  reports_->on_plan(*prepared_);
  GLN_RETURN_IF_ERROR(session_->apply(prepared_, now(), actions_));
  plan_ = std::move(prepared_);
  return absl::OkStatus();
}

void Network::open_session() {
  const session::Options options{job_, welcome_.member, options_.window_bytes};
  session_ = std::make_unique<session::Session>(options, &pool_);
  supervisor_.emplace(supervision::Options{.deadline = welcome_.deadline, .plan_timeout = options_.plan_timeout});
  reports_.emplace(supervision::Reports::Options{.deadline = welcome_.deadline, .plan_timeout = options_.plan_timeout});
}

void Network::add_lateness(control::Report& report) const {
  if (session_ == nullptr || plan_ == nullptr) return;
  report.epoch = plan_->epoch;
  for (const session::OwnerWaits::Late& late : session_->late(now())) {
    report.late.push_back({late.owner, absl::ToDoubleSeconds(late.time)});
  }
  report.workers_late_seconds = absl::ToDoubleSeconds(session_->workers_late(now()));
}

void Network::on_coordinator_lost() {
  if (!reports_.has_value()) return;
  reports_->on_coordinator_lost(now());
  supervisor_->on_coordinator_lost();
}

void Network::on_coordinator_found() {
  if (!reports_.has_value()) return;
  reports_->on_coordinator_found();
  supervisor_->on_coordinator_found();
}

void Network::on_coordinator_gone(const absl::Status& why) {
  if (!reports_.has_value()) return;
  reports_->on_coordinator_gone(why);
  supervisor_->on_coordinator_gone();
}

// Closes the connection to a member that is no longer in its place of the plan.
void Network::drop(const supervision::Drop& dropped) {
  transport::Connection* const connection = std::exchange(owners_[dropped.member].connection, nullptr);
  if (connection != nullptr) connection->close(absl::OkStatus());
  if (dropped.was_up) session_->on_disconnected(dropped.member);
}

void Network::set_ending() {
  if (session_ == nullptr) return;
  session_->set_ending();
  supervisor_->set_ending();
}

void Network::connect(Owner& owner) {
  auto connection = dial(owner);
  if (connection.ok()) {
    owner.connection = *connection;
  } else {
    supervisor_->on_dial_failed(owner.member, connection.status(), now(), supervised_);
  }
}

absl::StatusOr<transport::Connection*> Network::dial(Owner& owner) {
  transport::ConnectOptions options{job_, welcome_.member, welcome_.secret};
  options.context = &owner;
  if (is_own(owner)) return to_summer_->connect(address_, options);
  options.keep_alive = is_cpu_summer(owner) ? kSummerKeepAlive : keep_alive_of(welcome_.deadline);
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
  if (connection.peer().accepted) return colocated_.on_connected(connection);
  auto& owner = *static_cast<Owner*>(connection.context);
  if (owner.connection != &connection) return;  // of an earlier member in this place
  supervisor_->on_connected(owner.member);
  session_->on_connected(owner.member, now(), actions_);
}

absl::StatusOr<Buffer> Network::on_header(transport::Connection&, const wire::Header& header) {
  return pool_.take(header.payload_bytes);
}

void Network::on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  if (connection.peer().accepted) return colocated_.on_frame(connection, header, std::move(payload));
  const auto& owner = *static_cast<Owner*>(connection.context);
  if (owner.connection != &connection) return;  // of an earlier member in this place
  note_epoch(owner, header.epoch);
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result || header.type == wire::FrameType::kDefer) {
    record(*recorder_, is_result ? trace::Kind::kResult : trace::Kind::kDeferred, header, owner.member);
  }
  if (is_result) supervisor_->on_result();
  const bool doubted = supervisor_->is_doubted(owner.member);
  const uint64_t results = doubted ? session_->counters().results : 0;
  const absl::Status status = session_->on_frame(owner.member, header, std::move(payload), now(), actions_);
  if (doubted && session_->counters().results > results) supervisor_->on_progress(owner.member, supervised_);
  if (!status.ok()) {
    env_.log->warning("summer violated the protocol", "summer", plan_->member_name(owner.member), "reason",
                      status.message());
    connection.close(status);
  }
  if (!actions_.refused.ok()) listener_->on_failed(std::exchange(actions_.refused, absl::OkStatus()));
}

void Network::note_epoch(const Owner& owner, uint32_t epoch) {
  uint32_t& noted = noted_epochs_[is_cpu_summer(owner) ? 0 : 1];
  if (epoch <= std::max(noted, plan_->epoch)) return;
  noted = epoch;
  listener_->on_owner_follows(epoch, !is_cpu_summer(owner));
}

void Network::on_closed(transport::Connection& connection, const absl::Status& status) {
  if (connection.context == nullptr) return colocated_.on_closed(connection, status);
  auto& owner = *static_cast<Owner*>(connection.context);
  if (owner.connection != &connection) return;
  owner.connection = nullptr;
  const bool was_up = is_up(owner);
  supervisor_->on_closed(owner.member, status, now(), supervised_);
  if (!was_up) return;
  session_->on_disconnected(owner.member);
  env_.log->debug("connection to a summer broke", "summer", plan_->member_name(owner.member), "reason",
                  status.message());
}

void Network::start(session::PieceRequest piece) {
  const uint64_t id = piece.id;
  const uint32_t tensor = piece.tensor;
  if (recorder_->is_on() && session_ != nullptr) {
    recorder_->record(trace::Kind::kReady, session_->step(tensor, piece.first), tensor, piece.first);
  }
  const absl::Status status = session_->start(std::move(piece), now(), actions_);
  if (!status.ok()) actions_.done.push_back({id, status});
}

void Network::fail(const absl::Status& status) {
  failed_ = true;
  // Queued frames and contributions at the colocated summer may refer to users' memory. So they are dropped before any
  // request is reported done.
  for (Owner& owner : owners_) {
    if (owner.connection != nullptr) owner.connection->close(status);
  }
  transport_->poll(absl::ZeroDuration());
  to_summer_->poll(absl::ZeroDuration());
  colocated_.poll();
  colocated_.close();
  if (session_ != nullptr) session_->fail(status, actions_);
  flush();
}

void Network::wait(absl::Duration timeout) { transport_->wait(timeout); }

void Network::advance() {
  flush();
  // A frame in process may cause another one. A few rounds are usually enough; the next poll() handles the rest.
  for (int round = 0; round < 4 && has_local_work(); ++round) {
    colocated_.poll();
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
    if (!failed_) supervise();
  }
  advance();
}

void Network::supervise() {
  note_arrivals();
  const std::vector<uint32_t> due = supervisor_->all_settled() ? std::vector<uint32_t>() : session_->waiting_for();
  supervisor_->tick(now(), due, supervised_);
  carry_out();
  if (!failed_) report_losses(due);
  if (!failed_ && now() >= measure_at_) measure_round_trip();
}

// A path whose peer has confirmed all frames has made progress, even if the sums wait for other workers.
void Network::note_arrivals() {
  for (const Owner& owner : owners_) {
    if (is_up(owner) && supervisor_->is_doubted(owner.member) && owner.connection->all_arrived()) {
      supervisor_->on_progress(owner.member, supervised_);
    }
  }
}

void Network::carry_out() {
  for (const uint32_t member : supervised_.dials) connect(owners_[member]);
  for (const uint32_t member : supervised_.healed) reports_->withdraw(member);
  for (const supervision::Warning& warning : supervised_.warnings) {
    env_.log->warning(warning.what, "summer", plan_->member_name(warning.member), "address",
                      plan_->members[warning.member].address, "last", warning.last.message());
  }
  for (const supervision::Loss& loss : std::exchange(supervised_.losses, {})) {
    if (loss.ends_job) {
      listener_->on_lost(loss.member, true, loss.why);
    } else {
      reports_->add(loss.member, loss.since, loss.why, now());
    }
    if (failed_) return;
  }
  supervised_.clear();
}

void Network::report_losses(const std::vector<uint32_t>& due) {
  reports_->tick(now(), due, report_actions_);
  for (const std::string& warning : report_actions_.warnings) env_.log->warning(warning);
  for (const supervision::Report& report : report_actions_.reports)
    listener_->on_lost(report.member, false, report.why);
  const absl::Status failure = std::exchange(report_actions_.failure, absl::OkStatus());
  report_actions_.warnings.clear();
  report_actions_.reports.clear();
  if (!failure.ok()) listener_->on_failed(failure);
}

void Network::measure_round_trip() {
  measure_at_ = now() + kMeasureEvery;
  log_transports();
  round_trip_ = absl::ZeroDuration();
  for (const Owner& owner : owners_) {
    if (is_up(owner)) round_trip_ = std::max(round_trip_, owner.connection->round_trip());
  }
  session_->set_round_trip(round_trip_);
}

void Network::flush() {
  // send() does not call back, but on_summed() may start the next request, which appends to actions_.
  while (!actions_.sends.empty() || !actions_.done.empty()) {
    std::swap(actions_, flushing_);
    for (session::Send& send : flushing_.sends) {
      Owner& owner = owners_[send.owner];
      if (!is_up(owner)) continue;
      if (send.header.type == wire::FrameType::kPush)
        record(*recorder_, trace::Kind::kPushed, send.header, owner.member);
      owner.connection->send(send.header, std::move(send.payload));
    }
    flushing_.sends.clear();
    for (const session::Done& done : flushing_.done) listener_->on_summed(done.id, done.status);
    flushing_.done.clear();
  }
}

bool Network::has_work() const { return transport_->pending() || has_local_work(); }

bool Network::has_local_work() const {
  return to_summer_->pending() || colocated_.pending() || !actions_.sends.empty() || !actions_.done.empty();
}

std::string Network::describe_transports() const {
  constexpr size_t kMost = 8;
  std::array<std::vector<std::string>, transport::kKinds> by_kind;
  for (const Owner& owner : owners_) {
    if (!is_up(owner)) continue;
    by_kind[static_cast<size_t>(owner.connection->kind())].push_back(plan_->member_name(owner.member));
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

void Network::log_transports() {
  if (!connected()) return;
  std::string now_used = describe_transports();
  if (now_used == logged_transports_) return;
  logged_transports_ = std::move(now_used);
  env_.log->info("connected", "transports", logged_transports_);
}

transport::any::Counters Network::transport_counters() const {
  transport::any::Counters counters = transport_->counters();
  for (const Owner& owner : owners_) {
    if (is_up(owner) && is_own(owner)) ++counters.connections[static_cast<size_t>(transport::Kind::kInproc)];
  }
  return counters;
}

bool Network::connected() const { return supervisor_.has_value() && supervisor_->all_up(); }

bool Network::idle() const { return (session_ == nullptr || session_->idle()) && colocated_.idle(); }

bool Network::may_leave() const {
  return (session_ == nullptr || session_->idle()) && colocated_.idle_without(welcome_.member);
}

std::string Network::describe_waiting() const {
  std::vector<std::string> names;
  for (const Owner& owner : owners_) {
    if (!is_up(owner) && supervisor_->is_member(owner.member)) {
      names.push_back(absl::StrCat(plan_->member_name(owner.member), " at ", plan_->members[owner.member].address, " (",
                                   supervisor_->last(owner.member).message(), ")"));
    }
  }
  if (names.empty() && session_ != nullptr) {
    for (uint32_t member : session_->waiting_for()) names.push_back(plan_->member_name(member));
  }
  return names.empty() ? "no summer" : absl::StrJoin(names, ", ");
}

}  // namespace gleaner::runtime
