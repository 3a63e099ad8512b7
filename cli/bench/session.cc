#include "cli/bench/session.h"

#include <array>

#include "common/base/status_macros.h"

namespace gleaner::cli {
namespace {

// gln_data_type has the same numbers as DataType (common/base/bytes.h).
gln_data_type to_c(DataType type) { return static_cast<gln_data_type>(type); }

absl::Status to_status(gln_status status) {
  const absl::string_view message = gln_last_error();
  switch (status) {
    case GLN_OK:
      return absl::OkStatus();
    case GLN_INVALID_ARGUMENT:
      return absl::InvalidArgumentError(message);
    case GLN_FAILED_PRECONDITION:
      return absl::FailedPreconditionError(message);
    case GLN_DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(message);
    case GLN_UNAVAILABLE:
      return absl::UnavailableError(message);
    case GLN_PERMISSION_DENIED:
      return absl::PermissionDeniedError(message);
    case GLN_RESOURCE_EXHAUSTED:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

absl::StatusOr<BenchSession> BenchSession::open(const std::string& transports) {
  BenchSession session;
  gln_session* opened = nullptr;
  gln_options options = GLN_OPTIONS_INIT;
  if (!transports.empty()) options.transports = transports.c_str();
  GLN_RETURN_IF_ERROR(to_status(gln_open(&options, &opened)));
  session.session_.reset(opened);
  GLN_RETURN_IF_ERROR(to_status(gln_get_rank_info(opened, &session.info_)));
  return session;
}

absl::StatusOr<uint32_t> BenchSession::declare(const plan::Tensor& tensor) {
  uint32_t id = 0;
  GLN_RETURN_IF_ERROR(to_status(
      gln_declare(session_.get(), tensor.name.c_str(), tensor.elements, to_c(tensor.type), tensor.priority, &id)));
  return id;
}

absl::StatusOr<uint64_t> BenchSession::start_sum(uint32_t tensor, const void* input, void* output) {
  uint64_t handle = 0;
  GLN_RETURN_IF_ERROR(to_status(gln_push_pull(session_.get(), tensor, input, output, GLN_SUM, &handle)));
  return handle;
}

absl::Status BenchSession::wait(uint64_t handle) { return to_status(gln_wait(session_.get(), handle, -1)); }

absl::StatusOr<std::string> BenchSession::tensor_plan(uint32_t tensor) {
  std::string text(1 << 20, '\0');
  GLN_RETURN_IF_ERROR(to_status(gln_get_tensor_plan(session_.get(), tensor, text.data(), text.size())));
  text.resize(text.find('\0'));
  return text;
}

absl::StatusOr<std::string> BenchSession::transports() {
  std::array<char, 4096> text;
  GLN_RETURN_IF_ERROR(to_status(gln_get_transports(session_.get(), text.data(), text.size())));
  return std::string(text.data());
}

absl::Status BenchSession::close() { return to_status(gln_close(session_.release(), 0)); }

}  // namespace gleaner::cli
