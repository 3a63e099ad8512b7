#include "coordinator/service/jobs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/proto/proof.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kSweepEvery = absl::Milliseconds(100);
constexpr size_t kSessionBytes = 16;
constexpr size_t kSecretBytes = 32;

absl::StatusOr<std::string> random_bytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  GLN_RETURN_IF_ERROR(random.fill({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

absl::Status validate(const Service::ServiceOptions& options) {
  if (options.authenticator != nullptr && !options.tls.has_value()) {
    return absl::InvalidArgumentError("bearer tokens need TLS: give the coordinator a certificate");
  }
  return absl::OkStatus();
}

absl::Status validate(const Service::JobOptions& job, const Service::ServiceOptions& options) {
  GLN_RETURN_IF_ERROR(validate(job.options));
  if (options.authenticator == nullptr) {
    return job.token.empty() ? absl::InvalidArgumentError("the token is empty") : absl::OkStatus();
  }
  if (!job.token.empty()) {
    return absl::InvalidArgumentError(
        "this coordinator asks members for bearer tokens; a job with a token of its own needs another coordinator");
  }
  if (job.data_secret.size() != kSecretBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a job without a token needs a data secret of ", kSecretBytes,
                                                   " bytes, not ", job.data_secret.size()));
  }
  return absl::OkStatus();
}

absl::Status not_here(const std::string& job) {
  return absl::NotFoundError(absl::StrCat("there is no job '", job, "'"));
}

}  // namespace

Jobs::Jobs(const Env& env, ServiceOptions options, std::string sole)
    : env_(env), options_(std::move(options)), sole_(std::move(sole)) {}

absl::StatusOr<std::unique_ptr<Jobs>> Jobs::start(const Env& env, ServiceOptions options, std::string sole) {
  GLN_RETURN_IF_ERROR(validate(options));
  auto jobs = std::unique_ptr<Jobs>(new Jobs(env, std::move(options), std::move(sole)));
  const auto on_opened = [events = jobs->events_](std::shared_ptr<Stream> stream) {
    const StreamId id = stream->id();
    events->post({id, Opened{std::move(stream)}});
  };
  GLN_ASSIGN_OR_RETURN(jobs->port_, Port::open(jobs->options_.listen, jobs->options_.tls, jobs->sole_.empty(),
                                               jobs->events_, on_opened));
  if (prometheus::Registry* registry = jobs->options_.registry; registry != nullptr) {
    jobs->turned_away_ = &prometheus::BuildCounter()
                              .Name("gleaner_coordinator_turned_away_streams_total")
                              .Help("Streams refused because too many streams were not authenticated.")
                              .Register(*registry)
                              .Add({});
  }
  GLN_ASSIGN_OR_RETURN(jobs->models_, ModelThread::start([events = jobs->events_](Modelled modelled) {
                         events->post({0, std::move(modelled)});
                       }));
  GLN_ASSIGN_OR_RETURN(jobs->thread_, start_thread("gln-jobs", [raw = jobs.get()] { raw->run(); }));
  return jobs;
}

Jobs::~Jobs() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  models_.reset();
  const absl::Status why = absl::UnavailableError("this coordinator is shutting down");
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, opened] : new_streams_) opened.stream->end(why);
    for (auto& [id, joined] : joined_streams_) joined.stream->end(why);
  }
  port_.reset();
  // Streams that were opened after the thread had ended share ownership of the queue that owns them.
  events_->take(absl::ZeroDuration());
}

std::shared_ptr<Job> Jobs::find(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : found->second;
}

absl::Status Jobs::add(const JobOptions& job) { return add(job, nullptr); }

absl::Status Jobs::add(const JobOptions& job, std::shared_ptr<Metrics> metrics) {
  GLN_RETURN_IF_ERROR(validate(job, options_));
  GLN_ASSIGN_OR_RETURN(std::string nonce, random_bytes(*env_.random, proto::kNonceBytes));
  std::string session;  // stays empty for a sole job, which no other coordinator can take up
  if (sole_.empty()) {
    GLN_ASSIGN_OR_RETURN(session, random_bytes(*env_.random, kSessionBytes));
  }
  const std::string& name = job.options.job;
  absl::MutexLock series(&series_mutex_);
  absl::MutexLock lock(&mutex_);
  if (find(name) != nullptr) return absl::AlreadyExistsError(absl::StrCat("job '", name, "' exists already"));
  // After that check, since two Metrics of one name share their series, and the first destructor removes the series.
  if (metrics == nullptr && options_.registry != nullptr) metrics = std::make_shared<Metrics>(*options_.registry, name);
  jobs_[name] =
      std::make_shared<Job>(env_, job, std::move(nonce), std::move(session), options_.term, std::move(metrics),
                            [this](auto asking, auto request) { models_->add(std::move(asking), std::move(request)); });
  return absl::OkStatus();
}

void Jobs::remove(const std::string& job, const absl::Status& why) {
  absl::MutexLock series(&series_mutex_);
  std::shared_ptr<Metrics> metrics;  // destroyed after `lock` and before `series` is released
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  std::shared_ptr<Job> removed = std::move(found->second);
  jobs_.erase(found);
  metrics = removed->remove(why);
  removed_.push_back(std::move(removed));
}

absl::Status Jobs::set_summers(const std::string& job, uint32_t summers) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  return found == nullptr ? not_here(job) : found->set_summers(summers);
}

absl::Status Jobs::release_summer(const std::string& job, uint32_t index) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  return found == nullptr ? not_here(job) : found->release_summer(index);
}

absl::Status Jobs::set_bandwidth(const std::string& job, Role role, uint32_t index, double bits_per_second) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  return found == nullptr ? not_here(job) : found->set_bandwidth(role, index, bits_per_second);
}

absl::Status Jobs::set_summer_switch(const std::string& job, uint32_t index, uint32_t at) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  return found == nullptr ? not_here(job) : found->set_summer_switch(index, at);
}

void Jobs::ended(const std::string& job, Role role, uint32_t index, const absl::Status& how) {
  absl::MutexLock lock(&mutex_);
  if (const std::shared_ptr<Job> found = find(job)) found->on_ended(role, index, how);
}

void Jobs::exited(const std::string& job, uint32_t worker, uint32_t local_rank, const RankExit& exit) {
  absl::MutexLock lock(&mutex_);
  if (const std::shared_ptr<Job> found = find(job)) found->on_exited(worker, local_rank, exit);
}

std::optional<JobState> Jobs::state(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  return found == nullptr ? std::nullopt : std::optional(found->state());
}

std::optional<absl::Status> Jobs::outcome(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  return found == nullptr ? std::nullopt : found->outcome();
}

void Jobs::stop(const std::string& job, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (const std::shared_ptr<Job> found = find(job)) found->stop(why);
}

void Jobs::wait(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Job> found = find(job);
  const auto settled = [&found] { return found == nullptr || found->settled(); };
  mutex_.Await(absl::Condition(&settled));
}

void Jobs::run() {
  absl::Duration next_sweep = now() + kSweepEvery;
  while (!stopping_) {
    for (Event& event : events_->take(std::max(absl::ZeroDuration(), next_sweep - now()))) {
      absl::MutexLock lock(&mutex_);
      handle(event);
    }
    if (now() < next_sweep) continue;
    next_sweep = now() + kSweepEvery;
    std::vector<std::string> changed;
    {
      absl::MutexLock lock(&mutex_);
      changed = sweep();
    }
    for (const std::string& job : changed) options_.on_changed(job);
  }
}

std::vector<std::string> Jobs::sweep() {
  std::vector<std::string> changed;
  for (auto& [name, job] : jobs_) {
    job->tick();
    if (options_.on_changed != nullptr && job->take_changed()) changed.push_back(name);
  }
  std::erase_if(removed_, [](const std::shared_ptr<Job>& job) {
    job->tick();
    return job->settled();
  });
  drop_late_streams();
  if (turned_away_ != nullptr) {
    turned_away_->Increment(static_cast<double>(port_->turned_away()) - turned_away_->Value());
  }
  return changed;
}

}  // namespace gleaner::coordinator
