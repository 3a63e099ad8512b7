// Functions that convert plans, tensors, operations and statuses to the messages of coordinator.proto and back. Pure.
//
// decode() returns only plans and tensors that have passed plan::validate(), since messages are not trusted.
// InvalidArgument names the rule that a message breaks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::proto {

// The version that both ends of a stream must speak.
inline constexpr uint32_t kProtocol = 2;

// The longest message that is sent or received. A plan of 2^24 partitions has about 100 MB.
inline constexpr int kMaxMessageBytes = 256 << 20;

void encode(const plan::Plan& plan, v1::Plan* message);
absl::StatusOr<plan::Plan> decode(const v1::Plan& message);
// Returns the SHA-256 of the encoded plan, 32 bytes. It is the same for equal plans in one version of gleaner.
std::string digest(const plan::Plan& plan);

void encode(const plan::Tensor& tensor, v1::Tensor* message);
absl::StatusOr<std::vector<plan::Tensor>> decode(const google::protobuf::RepeatedPtrField<v1::Tensor>& messages);

void encode(const plan::Operation& operation, v1::Operation* message);
absl::StatusOr<std::vector<plan::Operation>> decode(const google::protobuf::RepeatedPtrField<v1::Operation>& messages);

void encode(const absl::Status& status, v1::Status* message);
absl::Status decode(const v1::Status& message);  // an unknown code becomes Unknown

}  // namespace gleaner::proto
