// Checks members' service account tokens: by TokenReview, and then against the pod that the operator made for that
// member.
//
// A token is good for one member: it must be bound to the very pod (name and uid) that is this worker or summer of this
// attempt, and be meant for the audience gleaner.dev. A few threads of its own ("gln-review") ask the API server.
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
#include "operator/coordinator/service.h"
#include "operator/reconcile/pod_view.h"

namespace gleaner::operation {

// Who a token belongs to, by the API server's word.
struct TokenHolder {
  std::string ns, pod, pod_uid;
};

// What a TokenReview's status says. PermissionDenied: the token is not good, or not bound to a pod.
absl::StatusOr<TokenHolder> read_review(const kube::Object& review);

// Whether this pod is that member of `session` ("namespace/job/attempt"). PermissionDenied says what differs.
absl::Status check_member(const std::string& session, const coordinator::Identity& identity, const TokenHolder& holder,
                          const reconcile::PodView& pod);

class TokenAuthenticator final : public coordinator::Authenticator {
 public:
  using FindPod = std::function<absl::StatusOr<reconcile::PodView>(const std::string& ns, const std::string& name)>;
  // `client` outlives it. `find_pod` may block and is called on its threads.
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
