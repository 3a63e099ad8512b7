// TokenAuthenticator checks members' service account tokens, first by TokenReview and then against the pod that the
// operator made for the member.
//
// A token is valid for one member only. It must be bound to the pod (by name and uid) of this worker or summer in this
// attempt, and be issued for the audience gleaner.dev. Threads of the authenticator ("gln-review") ask the API server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "coordinator/service/service.h"
#include "operator/reconcile/pod_view.h"

namespace gleaner::operation {

// The pod to which a token is bound, as the API server reports it.
struct TokenHolder {
  std::string ns, pod, pod_uid;
};

// Returns the holder from a TokenReview's status. PermissionDenied: the token is not valid, or not bound to a pod.
absl::StatusOr<TokenHolder> read_review(const kube::Object& review);

// Checks that `pod`, which holds the token, is this member of `session` ("namespace/job/attempt"). PermissionDenied: it
// is another one; the message names the difference.
absl::Status check_member(const std::string& session, const coordinator::Identity& identity, const TokenHolder& holder,
                          const reconcile::PodView& pod);

class TokenAuthenticator final : public coordinator::Authenticator {
 public:
  using FindPod = std::function<absl::StatusOr<reconcile::PodView>(const std::string& ns, const std::string& name)>;
  // `client` must outlive this object. The threads of the authenticator call `find_pod`, which may block.
  TokenAuthenticator(const Env& env, kube::Client& client, FindPod find_pod);
  ~TokenAuthenticator() override;

  void authenticate(const std::string& job, const coordinator::Identity& identity, const std::string& bearer,
                    std::function<void(absl::Status)> done) override;

 private:
  struct Question {
    std::string session;
    coordinator::Identity identity;
    std::string bearer;
    std::function<void(absl::Status)> done;
  };

  void run();
  absl::Status answer(const Question& question);

  const Env env_;
  kube::Client& client_;
  const FindPod find_pod_;
  absl::Mutex mutex_;
  std::vector<Question> questions_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace gleaner::operation
