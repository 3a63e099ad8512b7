#include "comm-lib/network/network_stage.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm-lib/executor/executor.h"
#include "comm-lib/network/exchange_metrics.h"
#include "comm-lib/pipeline/ids.h"
#include "common/base/status_macros.h"

namespace gleaner::network {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(5);
constexpr absl::Duration kMeasureEvery = absl::Seconds(1);

// Records a frame to or from `peer`.
void record(trace::Recorder& recorder, trace::Kind kind, const wire::Header& header, uint32_t peer) {
  recorder.record(kind, header.step, header.tensor, header.partition, peer, header.payload_bytes);
}

}  // namespace

NetworkStage::NetworkStage(const Env& env, const NetworkOptions& options, const kernels::Kernels* kernels,
                           trace::Recorder* recorder, NetworkListener* listener)
    : env_(env),
      options_(options),
      job_(wire::job_number(options.job)),
      kernels_(kernels),
      recorder_(recorder),
      listener_(listener),
      colocated_(env, {job_, options.summer_memory_bytes}, kernels, &pool_, recorder),
      connections_(env, {job_, options.listen, options.advertise, options.transports}) {}

NetworkStage::~NetworkStage() = default;

absl::StatusOr<std::unique_ptr<NetworkStage>> NetworkStage::create(const Env& env, const NetworkOptions& options,
                                                                   const kernels::Kernels* kernels,
                                                                   trace::Recorder* recorder,
                                                                   NetworkListener* listener) {
  auto stage = std::unique_ptr<NetworkStage>(new NetworkStage(env, options, kernels, recorder, listener));
  GLN_RETURN_IF_ERROR(stage->connections_.open(stage->colocated_.hub(), stage.get(), stage.get()));
  GLN_RETURN_IF_ERROR(stage->colocated_.listen(stage->address()));
  return stage;
}

const wire::Secret* NetworkStage::find(uint64_t job) const {
  return welcome_.has_value() && job == job_ ? &welcome_->secret : nullptr;
}

absl::Status NetworkStage::on_event(const pipeline::Event& event) {
  if (const auto* prepare = std::get_if<pipeline::Prepare>(&event)) return this->prepare(prepare->plan);
  if (const auto* commit = std::get_if<pipeline::Commit>(&event)) return this->commit(commit->epoch);
  if (const auto* withdrawn = std::get_if<pipeline::Withdraw>(&event)) exchanges_.withdraw(withdrawn->epoch, now());
  if (const auto* welcome = std::get_if<pipeline::Welcome>(&event)) join(*welcome);
  if (!is_following()) return absl::OkStatus();
  if (const auto* ending = std::get_if<pipeline::Ending>(&event)) exchanges_.set_ending(ending->left);
  supervision_->on_event(event);
  return absl::OkStatus();
}

// A repeated welcome may differ only in the number of summers. Then the colocated summer stays open, since other
// workers may have connected to it.
void NetworkStage::join(const pipeline::Welcome& welcome) {
  const bool is_same = welcome_.has_value() && welcome.member == welcome_->member && welcome.secret == welcome_->secret;
  welcome_ = welcome;
  connections_.set_welcome(welcome);
  if (!is_same || !colocated_.is_open()) colocated_.open(welcome.member);
  if (!is_same && !is_following()) open_exchanges();
}

// Each exchange that a worker has is added here.
void NetworkStage::open_exchanges() {
  exchanges_ = exchange::Exchanges();
  auto session =
      std::make_unique<session::Session>(session::Options{job_, welcome_->member, options_.window_bytes}, &pool_);
  session_ = session.get();
  exchanges_.add(exchange::Exchanges::SummedBy::kOwners, std::move(session));
  const executor::Options options{job_, welcome_->member, options_.window_bytes};
  auto executor = std::make_unique<executor::Executor>(options, &pool_, kernels_, recorder_);
  executor_ = executor.get();
  exchanges_.add(exchange::Exchanges::SummedBy::kWorkers, std::move(executor));
}

absl::Status NetworkStage::prepare(const std::shared_ptr<const plan::Plan>& plan) {
  absl::Status status = exchanges_.prepare(*plan, now());
  if (status.ok()) status = colocated_.prepare(plan);
  if (!status.ok()) exchanges_.withdraw(plan->epoch, now());
  return status;
}

absl::Status NetworkStage::commit(uint32_t epoch) {
  GLN_RETURN_IF_ERROR(colocated_.commit(epoch));
  if (!is_following()) {
    const OwnerSupervision::Options options{welcome_->deadline, options_.plan_timeout};
    supervision_.emplace(env_, options, &connections_, &exchanges_, listener_);
  }
  supervision_->follow(plan());
  return exchanges_.apply(plan(), now());
}

void NetworkStage::start(pipeline::PieceRequest piece) {
  if (!piece.access.is_host()) {
    return finish(piece.id, absl::InternalError("a piece in the memory of a GPU came to the network"));
  }
  if (recorder_->is_on()) {
    recorder_->record(trace::Kind::kReady, exchanges_.step(piece.tensor, piece.first), piece.tensor, piece.first);
  }
  exchanges_.start(std::move(piece), now());
  report_refusal();
}

void NetworkStage::on_connected(transport::Connection& connection) {
  if (connection.peer().accepted) return colocated_.on_connected(connection);
  const std::optional<uint32_t> member = connections_.on_connected(connection);
  if (!member.has_value()) return;
  supervision_->on_connected(*member);
  exchanges_.on_connected(*member, now());
  if (!connected()) return;
  measure();
  measure_overhead_if_idle();
}

absl::StatusOr<Buffer> NetworkStage::on_header(transport::Connection&, const wire::Header& header) {
  return pool_.take(header.payload_bytes);
}

void NetworkStage::on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  if (connection.peer().accepted) return on_accepted_frame(connection, header, std::move(payload));
  const std::optional<uint32_t> member = connections_.member_of(connection);
  if (!member.has_value()) return;
  const bool by_rank = *member < plan()->workers;
  if (owner_epochs_.note(by_rank, header.epoch, plan()->epoch)) listener_->on_owner_follows(header.epoch, by_rank);
  if (const absl::Status status = take_answer(*member, header, std::move(payload)); !status.ok()) {
    env_.log->warning("summer violated the protocol", "summer", plan()->member_name(*member), "reason",
                      status.message());
    connection.close(status);
  }
  report_refusal();
}

// Ends the session if the last frame or piece shows that another member will never accept a frame of this worker.
void NetworkStage::report_refusal() {
  absl::Status& refused = exchanges_.actions().refused;
  if (!refused.ok()) report_failure(std::exchange(refused, absl::OkStatus()));
}

absl::Status NetworkStage::take_answer(uint32_t member, const wire::Header& header, Buffer payload) {
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result || header.type == wire::FrameType::kDefer) {
    record(*recorder_, is_result ? trace::Kind::kResult : trace::Kind::kDeferred, header, member);
  }
  if (is_result) supervision_->on_result();
  bool& has_progressed = exchanges_.actions().has_progressed;
  has_progressed = false;
  absl::Status status = exchanges_.on_frame(member, header, std::move(payload), now());
  if (has_progressed && supervision_->is_doubted(member)) supervision_->on_progress(member);
  return status;
}

// Other workers' slices go to the exchange that executes schedules, all other frames to the colocated summer.
void NetworkStage::on_accepted_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  if (!exchanges_.takes_accepted(header.type) || !colocated_.is_open()) {
    return colocated_.on_frame(connection, header, std::move(payload));
  }
  // The sender repeats its frames on its next connection.
  if (!is_following()) return connection.close(absl::UnavailableError("this worker follows no plan yet"));
  supervision_->on_result();
  const uint32_t member = connection.peer().member;
  const absl::Status status = exchanges_.on_accepted_frame(member, header, std::move(payload), now());
  if (!status.ok()) {
    env_.log->warning("worker violated the protocol", "peer", plan()->member_name(member), "reason", status.message());
    connection.close(status);
  }
  report_refusal();
}

void NetworkStage::on_closed(transport::Connection& connection, const absl::Status& status) {
  if (connection.context == nullptr) return colocated_.on_closed(connection, status);
  const std::optional<MemberConnections::Closed> closed = connections_.on_closed(connection);
  if (!closed.has_value()) return;
  supervision_->on_closed(closed->member, status);
  if (!closed->was_up) return;
  exchanges_.on_disconnected(closed->member);
  env_.log->debug("connection to a summer broke", "summer", plan()->member_name(closed->member), "reason",
                  status.message());
}

void NetworkStage::fail(const absl::Status& status) {
  if (is_following()) supervision_->stop();
  // Queued frames and contributions at the colocated summer may refer to users' memory. So they are dropped before any
  // piece is reported done.
  connections_.close_all(status);
  connections_.poll();
  connections_.poll_own();
  colocated_.poll();
  colocated_.close(status);
  exchanges_.fail(status);
  flush();
}

absl::Status NetworkStage::add_group(uint32_t group, std::vector<uint32_t> members) {
  if (!is_following()) return absl::FailedPreconditionError("a group was made before the first plan");
  return executor_->add_group(group, std::move(members));
}

bool NetworkStage::has_arrived(uint32_t group) const { return executor_ != nullptr && executor_->has_arrived(group); }

absl::Status NetworkStage::remove_group(uint32_t group) {
  if (!is_following()) return absl::FailedPreconditionError("a group was removed before the first plan");
  const absl::Status status = executor_->remove_group(group, exchanges_.actions());
  report_refusal();
  return status;
}

void NetworkStage::start_call(const executor::Call& call) {
  executor::Call marked = call;
  marked.id |= pipeline::kCallBit;
  const absl::Status status = executor_->start_call(marked, now(), exchanges_.actions());
  if (!status.ok()) listener_->on_called(call.id, status);
  report_refusal();
}

std::string NetworkStage::describe_call(uint64_t id) const {
  return is_following() ? executor_->describe_call(id | pipeline::kCallBit) : "";
}

void NetworkStage::advance() {
  flush();
  // A frame in process may cause another one. A few rounds are usually enough; the next poll() handles the rest.
  for (int round = 0; round < 4 && has_local_work(); ++round) {
    colocated_.poll();
    connections_.poll_own();
    flush();
  }
  connections_.flush();
}

void NetworkStage::poll() {
  flush();
  connections_.poll();
  if (is_following() && now() - last_tick_ >= kTick) tick();
  advance();
}

void NetworkStage::tick() {
  last_tick_ = now();
  exchanges_.on_tick(last_tick_);
  if (const absl::Status status = supervision_->tick(); !status.ok()) report_failure(status);
  if (supervision_->is_stopped()) return;
  if (now() >= measure_at_) {
    log_transports();
    measure();
  }
  measure_overhead_if_idle();
}

void NetworkStage::measure() {
  measure_at_ = now() + kMeasureEvery;
  exchanges_.set_round_trip(connections_.measure_round_trip());
  connections_.measure_rates();
  is_overhead_due_ = true;
}

void NetworkStage::measure_overhead_if_idle() {
  if (!is_overhead_due_ || !connected() || !idle()) return;
  is_overhead_due_ = false;
  connections_.measure_overhead();
}

void NetworkStage::flush() {
  // send() does not call back, but finish() may start the next piece, which appends to the actions.
  while (exchanges_.has_actions()) {
    std::swap(exchanges_.actions(), flushing_);
    for (exchange::Send& send : flushing_.sends) {
      if (!connections_.is_up(send.member)) continue;
      if (send.header.type == wire::FrameType::kPush)
        record(*recorder_, trace::Kind::kPushed, send.header, send.member);
      connections_.send(send.member, send.header, std::move(send.payload));
    }
    flushing_.sends.clear();
    for (const exchange::Done& done : flushing_.done) {
      (done.id & pipeline::kCallBit) != 0 ? listener_->on_called(done.id & ~pipeline::kCallBit, done.status)
                                          : finish(done.id, done.status);
    }
    flushing_.done.clear();
  }
}

bool NetworkStage::may_leave() const {
  return !welcome_.has_value() || (exchanges_.idle() && colocated_.idle_without(welcome_->member));
}

bool NetworkStage::has_local_work() const {
  return connections_.own_pending() || colocated_.pending() || exchanges_.has_actions();
}

void NetworkStage::log_transports() {
  if (!connected()) return;
  std::string now_used = describe_transports();
  if (now_used == logged_transports_) return;
  logged_transports_ = std::move(now_used);
  env_.log->info("connected", "transports", logged_transports_);
}

void NetworkStage::update(ExchangeMetrics& metrics) const {
  if (!is_following()) return;
  metrics.pushes.update(session_->counters());
  metrics.slices.update(executor_->counters());
}

void NetworkStage::add_figures(control::Report& report) const {
  report.round_trip_seconds = absl::ToDoubleSeconds(round_trip());
  report.overhead_seconds = absl::ToDoubleSeconds(overhead());
  report.link_bits_per_second = connections_.link_bits_per_second();
  if (!is_following()) return;
  report.epoch = plan()->epoch;
  for (const session::OwnerWaits::Late& late : session_->late(now())) {
    report.late.push_back({late.owner, absl::ToDoubleSeconds(late.time)});
  }
  report.workers_late_seconds = absl::ToDoubleSeconds(session_->workers_late(now()));
}

std::vector<uint32_t> NetworkStage::waiting_for() const {
  return is_following() ? exchanges_.waiting_for() : std::vector<uint32_t>();
}

std::string NetworkStage::describe_waiting() const {
  if (!is_following()) return "no summer";
  if (std::string missing = supervision_->describe_missing(); !missing.empty()) return missing;
  std::vector<std::string> names;
  for (const uint32_t member : exchanges_.waiting_for()) names.push_back(plan()->member_name(member));
  return names.empty() ? "no summer" : absl::StrJoin(names, ", ");
}

}  // namespace gleaner::network
