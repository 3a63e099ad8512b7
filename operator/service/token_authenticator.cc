#include "operator/service/token_authenticator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "operator/reconcile/names.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr int kThreads = 4;
constexpr size_t kMostWaiting = 4096;  // further members get Unavailable and try again later
constexpr char kUserPrefix[] = "system:serviceaccount:";

std::string first_of(const json& extra, const char* name) {
  const auto found = extra.find(name);
  if (found == extra.end() || !found->is_array() || found->empty() || !(*found)[0].is_string()) return "";
  return (*found)[0].get<std::string>();
}

bool has_audience(const json& status) {
  const json audiences = status.value("audiences", json::array());
  return std::any_of(audiences.begin(), audiences.end(),
                     [](const json& audience) { return audience == reconcile::kTokenAudience; });
}

}  // namespace

absl::StatusOr<TokenHolder> read_review(const kube::Object& review) {
  const json status = review.value("status", json::object());
  if (!status.value("authenticated", false) || !has_audience(status)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the token is not valid for the audience ", reconcile::kTokenAudience, " in this cluster"));
  }
  const json user = status.value("user", json::object());
  const std::string name = user.value("username", "");
  const json extra = user.value("extra", json::object());
  const std::vector<std::string> parts = absl::StrSplit(name, ':');
  TokenHolder holder;
  if (absl::StartsWith(name, kUserPrefix) && parts.size() == 4) holder.ns = parts[2];
  holder.pod = first_of(extra, "authentication.kubernetes.io/pod-name");
  holder.pod_uid = first_of(extra, "authentication.kubernetes.io/pod-uid");
  if (holder.ns.empty() || holder.pod.empty() || holder.pod_uid.empty()) {
    return absl::PermissionDeniedError("the token is not bound to a pod");
  }
  return holder;
}

absl::Status check_member(const std::string& session, const coordinator::Identity& identity, const TokenHolder& holder,
                          const reconcile::PodView& pod) {
  const auto refuse = [&](const std::string& why) {
    return absl::PermissionDeniedError(absl::StrCat("the token of pod ", holder.ns, "/", holder.pod,
                                                    " is not that of this member of ", session, ": ", why));
  };
  if (pod.uid != holder.pod_uid) return refuse("it belongs to an earlier pod of that name");
  if (pod.owner_uid.empty()) return refuse("no TrainingJob controls the pod");
  if (reconcile::session_name(absl::StrCat(pod.ns, "/", pod.job), pod.attempt) != session) {
    return refuse("the pod belongs to another job or attempt");
  }
  if (identity.role == coordinator::Role::kObserver) return absl::OkStatus();  // any pod of the job may observe it
  const bool summer = identity.role == coordinator::Role::kSummer;
  if (pod.role != (summer ? reconcile::kSummer : reconcile::kWorker))
    return refuse(absl::StrCat("the pod is a ", pod.role));
  if (!identity.index.has_value() || *identity.index != pod.index) {
    return refuse(absl::StrCat("the pod is number ", pod.index));
  }
  return absl::OkStatus();
}

TokenAuthenticator::TokenAuthenticator(const Env& env, kube::Client& client, FindPod find_pod)
    : env_(env), client_(client), find_pod_(std::move(find_pod)) {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] {
      name_this_thread("gln-review");
      run();
    });
  }
}

TokenAuthenticator::~TokenAuthenticator() {
  std::vector<Question> left;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    left.swap(questions_);
  }
  for (const Question& question : left) question.done(absl::UnavailableError("the operator is stopping"));
  for (std::thread& thread : threads_) thread.join();
}

void TokenAuthenticator::authenticate(const std::string& job, const coordinator::Identity& identity,
                                      const std::string& bearer, std::function<void(absl::Status)> done) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_ && questions_.size() < kMostWaiting) {
      questions_.push_back({job, identity, bearer, std::move(done)});
      return;
    }
  }
  done(absl::UnavailableError("too many members are joining at once; try again in a moment"));
}

void TokenAuthenticator::run() {
  while (true) {
    Question question;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !questions_.empty(); };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      question = std::move(questions_.front());
      questions_.erase(questions_.begin());
    }
    const absl::Status status = answer(question);
    if (!status.ok()) env_.log->warning("member refused", "session", question.session, "why", status.message());
    question.done(status);
  }
}

absl::Status TokenAuthenticator::answer(const Question& question) {
  const kube::Object review = {{"apiVersion", "authentication.k8s.io/v1"},
                               {"kind", "TokenReview"},
                               {"spec", {{"token", question.bearer}, {"audiences", {reconcile::kTokenAudience}}}}};
  const auto answered = client_.create(kube::token_reviews(), review);
  if (!answered.ok())
    return absl::UnavailableError(absl::StrCat("the API server can't review the token: ", answered.status().message()));
  GLN_ASSIGN_OR_RETURN(const TokenHolder holder, read_review(*answered));
  GLN_ASSIGN_OR_RETURN(const reconcile::PodView pod, find_pod_(holder.ns, holder.pod));
  return check_member(question.session, question.identity, holder, pod);
}

}  // namespace gleaner::operation
