#include "common/member/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/member/dialogue.h"

namespace gleaner::member {

std::optional<trace::Recording> obey(TraceOrder order, trace::Recorder& recorder) {
  switch (order) {
    case TraceOrder::kRecord:
      recorder.start();
      break;
    case TraceOrder::kStop:
      recorder.stop();
      break;
    case TraceOrder::kSend:
      return recorder.take();
    case TraceOrder::kForget:
      recorder.forget();
      break;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Client>> Client::start(const Env& env, const JoinOptions& options, Listener* listener) {
  if (options.token.empty() && options.token_file.empty()) {
    return absl::InvalidArgumentError("the token is empty; give the contents of the job's token file");
  }
  if (options.coordinator.port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the coordinator's address ", options.coordinator.to_string(), " has no port"));
  }
  auto dialogue = std::make_unique<Dialogue>(env, options, listener);
  if (absl::Status status = dialogue->begin(); !status.ok()) return status;
  return dialogue;
}

}  // namespace gleaner::member
