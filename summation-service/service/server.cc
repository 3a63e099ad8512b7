#include "summation-service/service/server.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/member/trace_order.h"

namespace gleaner::service {
namespace {

constexpr absl::Duration kPollTimeout = absl::Milliseconds(250);

// Returns "shm, tcp", for example.
std::string describe(const transport::any::Transport& transport) {
  return absl::StrJoin(transport.endpoints(), ", ", [](std::string* out, const transport::Endpoint& endpoint) {
    absl::StrAppend(out, name_of(endpoint.kind));
  });
}

}  // namespace

Server::Server(const Env& env, const ServerOptions& options)
    : env_(env), options_(options), job_(wire::job_number(options.job)), recorder_(env.clock), mailbox_([this] {
        transport_->wake();
      }) {}

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
    GLN_ASSIGN_OR_RETURN(server->metrics_, PublishedMetrics::serve(*options.metrics, options.job,
                                                                   options.transports.preferences, options.watch));
  }
  const member::JoinOptions join = server->join_options(address);
  env.log->info("listening", "address", join.identity.address, "transports", describe(*server->transport_), "kernel",
                server->kernels_->name());
  GLN_ASSIGN_OR_RETURN(server->client_, member::Client::start(env, join, server.get()));
  return server;
}

member::JoinOptions Server::join_options(const Address& address) const {
  member::JoinOptions join;
  join.coordinator = options_.coordinator;
  join.identity.job = options_.job;
  join.token = options_.token;
  join.token_file = options_.token_file;
  join.ca_file = options_.ca_file;
  join.identity.role = control::Role::kSummer;
  join.identity.index = options_.index;
  join.identity.address = address.to_string();
  join.identity.endpoints = to_texts(transport_->endpoints(options_.advertise));
  join.identity.network = network_id();
  join.identity.bits_per_second = options_.bits_per_second;
  join.timeout = options_.join_timeout;
  return join;
}

absl::Status Server::run() {
  name_this_thread("gln-summer");
  while (!ending_.has_ended()) {
    transport_->poll(kPollTimeout);
    mailbox_.drain();
    const absl::Duration now = env_.clock->since_start();
    ending_.tick(summer_ != nullptr && summer_->connected_workers() > 0, now);
    if (metrics_ != nullptr && summer_ != nullptr) metrics_->update(*summer_, *transport_, now);
  }
  mailbox_.close();
  client_->stop();
  return ending_.status();
}

void Server::stop() {
  mailbox_.post([this] {
    if (ending_.leave(env_.clock->since_start())) client_->leave(absl::OkStatus(), absl::ZeroDuration());
  });
}

void Server::give_up_joining(const absl::Status& why) {
  mailbox_.post([this, why] {
    if (!welcome_.has_value()) ending_.end(why);
  });
}

void Server::on_event(const member::Event& event) {
  mailbox_.post([this, event] { std::visit([this](const auto& each) { handle(each); }, event); });
}

void Server::handle(const control::Welcome& welcome) {
  const bool is_same = welcome_.has_value() && welcome.member == welcome_->member && welcome.secret == welcome_->secret;
  welcome_ = welcome;
  ending_.set_deadline(welcome.deadline);
  if (options_.on_joined != nullptr) options_.on_joined();
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
    return ending_.end(status);
  }
  if (options_.pace_by_plan) transport_->pace(prepared_->members[welcome_->member].bits_per_second);
  env_.log->info("plan committed", "job", options_.job, "epoch", commit.epoch);
}

void Server::handle(const member::CoordinatorLost&) {
  ending_.set_coordinator_lost(true);
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
