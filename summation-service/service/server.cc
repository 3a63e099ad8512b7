#include "summation-service/service/server.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/member/trace_order.h"

namespace gleaner::service {
namespace {

constexpr absl::Duration kObserveEvery = absl::Milliseconds(250);
constexpr absl::Duration kLeaveTimeout = absl::Milliseconds(1800);

// Returns "shm, tcp", for example.
std::string describe(const transport::any::Transport& transport) {
  return absl::StrJoin(transport.endpoints(), ", ", [](std::string* out, const transport::Endpoint& endpoint) {
    absl::StrAppend(out, name_of(endpoint.kind));
  });
}

}  // namespace

Server::Server(const Env& env, const ServerOptions& options)
    : env_(env),
      options_(options),
      job_(wire::job_number(options.job)),
      recorder_(env.clock),
      registry_(std::make_shared<prometheus::Registry>()),
      mailbox_([this] { transport_->wake(); }) {}

Server::~Server() {
  if (client_ != nullptr) client_->stop();
  transport_.reset();  // the transport holds buffers of the pool
}

absl::StatusOr<std::unique_ptr<Server>> Server::create(const Env& env, const ServerOptions& options) {
  auto server = std::unique_ptr<Server>(new Server(env, options));
  GLN_ASSIGN_OR_RETURN(server->kernels_, kernels::Kernels::choose(options.kernel));
  transport::Handler* const handler = server.get();
  GLN_ASSIGN_OR_RETURN(server->transport_, transport::make_transport(env, options.transports, handler, server.get()));
  if (options.pace_bits_per_second > 0) server->transport_->pace(options.pace_bits_per_second);
  GLN_ASSIGN_OR_RETURN(Address address, server->transport_->listen(options.listen));
  if (!options.advertise.empty()) address.host = options.advertise;
  if (options.metrics.has_value()) {
    server->metrics_.emplace(*server->registry_, options.job);
    server->transport_metrics_.emplace(*server->registry_, prometheus::Labels{{"job_name", options.job}},
                                       options.transports.preferences);
    if (options.watch != nullptr) {
      server->others_gauge_ =
          &metrics::add_gauge(*server->registry_, {{"job_name", options.job}}, "gleaner_summer_others_processor_share",
                              "Share of the processors' time that other processes took in the last 0.75 s.");
    }
    GLN_ASSIGN_OR_RETURN(server->metrics_server_, metrics::MetricsServer::start(*options.metrics, server->registry_));
  }
  member::JoinOptions join;
  join.coordinator = options.coordinator;
  join.job = options.job;
  join.token = options.token;
  join.token_file = options.token_file;
  join.ca_file = options.ca_file;
  join.role = control::Role::kSummer;
  join.index = options.index;
  join.address = address.to_string();
  join.endpoints = to_texts(server->transport_->endpoints(options.advertise));
  join.network = network_id();
  join.bits_per_second = options.bits_per_second;
  join.timeout = options.join_timeout;
  env.log->info("listening", "address", join.address, "transports", describe(*server->transport_), "kernel",
                server->kernels_->name());
  GLN_ASSIGN_OR_RETURN(server->client_, member::Client::start(env, join, server.get()));
  return server;
}

absl::Status Server::run() {
  name_this_thread("gln-summer");
  absl::Duration observed = env_.clock->since_start();
  while (!ended_.has_value()) {
    transport_->poll(kObserveEvery);
    mailbox_.drain();
    end_if_abandoned();
    if (leave_by_.has_value() && env_.clock->since_start() > *leave_by_) end(absl::OkStatus());
    const absl::Duration now = env_.clock->since_start();
    if (metrics_.has_value() && summer_ != nullptr && now - observed >= kObserveEvery) {
      observed = now;
      metrics_->update(*summer_);
      transport_metrics_->update(transport_->counters());
      if (others_gauge_ != nullptr) others_gauge_->Set(options_.watch->others_share());
    }
  }
  mailbox_.close();
  client_->stop();
  // A summer that wants to leave has left cleanly even if the job counted it as lost before.
  if (leave_by_.has_value() && absl::IsAborted(*ended_)) return absl::OkStatus();
  return *ended_;
}

void Server::stop() {
  mailbox_.post([this] {
    if (leave_by_.has_value()) return;
    leave_by_ = env_.clock->since_start() + kLeaveTimeout;
    client_->leave(absl::OkStatus(), absl::ZeroDuration());
  });
}

// Ends once neither a worker nor the coordinator has been connected for the job's deadline. Within that time workers
// may connect again.
void Server::end_if_abandoned() {
  const absl::Duration now = env_.clock->since_start();
  if (!coordinator_lost_ || summer_->connected_workers() > 0) last_connected_ = now;
  if (coordinator_lost_ && now - last_connected_ > welcome_->deadline) end(absl::OkStatus());
}

void Server::end(const absl::Status& status) {
  if (!ended_.has_value()) ended_ = status;
}

void Server::on_event(const member::Event& event) {
  mailbox_.post([this, event] { std::visit([this](const auto& each) { handle(each); }, event); });
}

void Server::handle(const control::Welcome& welcome) {
  const bool is_same = welcome_.has_value() && welcome.member == welcome_->member && welcome.secret == welcome_->secret;
  welcome_ = welcome;
  if (is_same) return;  // the summer stays, since workers may have connected to it
  if (summer_ != nullptr) summer_->disconnect(absl::UnavailableError("this summer has another number in the job now"));
  summer_ = std::make_unique<Summer>(env_, engine::Options{job_, welcome.member, options_.memory_cap_bytes}, &*kernels_,
                                     &pool_, &recorder_);
  env_.log->info("joined", "job", options_.job, "summer", welcome.member - welcome.workers, "workers", welcome.workers);
}

void Server::handle(const control::Prepare& prepare) {
  const uint32_t epoch = prepare.plan->epoch;
  const absl::Status status = summer_->prepare(prepare.plan);
  if (!status.ok()) return client_->refuse(epoch, status);
  prepared_ = prepare.plan;
  client_->acknowledge(epoch);
}

void Server::handle(const control::Commit& commit) {
  const absl::Status status = summer_->commit(commit.epoch);
  if (!status.ok()) {
    client_->leave(status, absl::ZeroDuration());
    return end(status);
  }
  if (options_.pace_by_plan) transport_->pace(prepared_->members[welcome_->member].bits_per_second);
  env_.log->info("plan committed", "job", options_.job, "epoch", commit.epoch);
}

void Server::handle(const member::CoordinatorLost&) {
  coordinator_lost_ = true;
  recorder_.forget();  // no observer can fetch the recording any more
}

void Server::handle(const control::Trace& trace) {
  if (auto recorded = member::obey(trace.order, recorder_)) {
    client_->send_trace(trace.recording, *std::move(recorded));
  }
}

const wire::Secret* Server::find(uint64_t job) const {
  return welcome_.has_value() && job == job_ ? &welcome_->secret : nullptr;
}

void Server::on_closed(transport::Connection& connection, const absl::Status& status) {
  if (summer_ != nullptr) return summer_->on_closed(connection, status);
  env_.log->debug("connection closed", "address", connection.peer().address, "reason", status.message());
}

}  // namespace gleaner::service
