#include "coordinator/service/server.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/service/jobs.h"

namespace gleaner::coordinator {

Server::Server(const Options& options, std::unique_ptr<Jobs> jobs) : options_(options), jobs_(std::move(jobs)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::start(const Env& env, const Options& options, const std::string& token,
                                                      const Address& listen, Metrics* metrics) {
  GLN_RETURN_IF_ERROR(validate(options));
  if (token.empty()) return absl::InvalidArgumentError("the token is empty");
  Service::ServiceOptions service;
  service.listen = listen;
  GLN_ASSIGN_OR_RETURN(auto jobs, Jobs::start(env, std::move(service), options.job));
  Service::JobOptions job;
  job.options = options;
  job.token = token;
  GLN_RETURN_IF_ERROR(jobs->add(job, {std::shared_ptr<Metrics>(), metrics}));  // not owned
  return std::unique_ptr<Server>(new Server(options, std::move(jobs)));
}

Server::~Server() {
  stop(absl::CancelledError("the coordinator is shutting down"));
  jobs_->wait(options_.job);
}

Address Server::address() const { return jobs_->address(); }

void Server::stop(const absl::Status& why) { jobs_->stop(options_.job, why); }

bool Server::is_running() const {
  const std::optional<JobState> state = jobs_->state(options_.job);
  return state.has_value() && state->phase == JobState::Phase::kRunning;
}

std::optional<absl::Status> Server::outcome() const { return jobs_->outcome(options_.job); }

absl::Status Server::wait() {
  jobs_->wait(options_.job);
  return *outcome();
}

std::optional<Server::Culprit> Server::culprit() const {
  const std::optional<JobState> state = jobs_->state(options_.job);
  if (!state.has_value() || !state->culprit.has_value()) return std::nullopt;
  const JobState::Culprit& culprit = *state->culprit;
  // A worker beyond options_.workers joined in a later round.
  if (culprit.role == Role::kWorker && culprit.index >= options_.workers) return std::nullopt;
  return Culprit{culprit.role == Role::kSummer ? options_.workers + culprit.index : culprit.index, culprit.local_rank};
}

bool Server::is_undecided() const {
  const std::optional<JobState> state = jobs_->state(options_.job);
  return state.has_value() && state->is_undecided;
}

Summary Server::summary() const { return jobs_->state(options_.job)->summary; }

void Server::worker_ended(uint32_t index, const absl::Status& how) {
  jobs_->ended(options_.job, Role::kWorker, index, how);
}

void Server::summer_ended(uint32_t index, const absl::Status& how) {
  jobs_->ended(options_.job, Role::kSummer, index, how);
}

absl::Status Server::set_summers(uint32_t summers) { return jobs_->set_summers(options_.job, summers); }

// Before the job begins, a summer that joined and was lost has a vacant seat, which is not in state->members.
bool Server::summer_has_joined(uint32_t index) const {
  const std::optional<JobState> state = jobs_->state(options_.job);
  if (!state.has_value() || state->phase != JobState::Phase::kGathering) return true;
  return std::none_of(state->members.begin(), state->members.end(), [&](const MemberState& member) {
    return member.role == Role::kSummer && member.index == index && !member.joined;
  });
}

void Server::rank_exited(uint32_t worker, uint32_t local_rank, bool well, const std::string& message) {
  jobs_->exited(options_.job, worker, local_rank, {well, message});
}

bool Server::any_rank_joined() const { return jobs_->state(options_.job)->any_rank_joined; }

}  // namespace gleaner::coordinator
