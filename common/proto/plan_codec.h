// Plans, tensors and statuses as the messages of coordinator.proto, and back. Pure.
//
// What decode() gives back has passed plan::validate(); nothing in a message is trusted before that. InvalidArgument
// says what is wrong with it.
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

// A plan of 2^24 partitions has about 100 MB; nothing longer is taken or sent.
inline constexpr int kMaxMessageBytes = 256 << 20;

void encode(const plan::Plan& plan, v1::Plan* message);
absl::StatusOr<plan::Plan> decode(const v1::Plan& message);
// SHA-256 of the encoded plan, 32 bytes: the same for equal plans of one version of gleaner.
std::string digest(const plan::Plan& plan);

void encode(const plan::Tensor& tensor, v1::Tensor* message);
absl::StatusOr<std::vector<plan::Tensor>> decode(const google::protobuf::RepeatedPtrField<v1::Tensor>& messages);

void encode(const plan::Operation& operation, v1::Operation* message);
absl::StatusOr<std::vector<plan::Operation>> decode(const google::protobuf::RepeatedPtrField<v1::Operation>& messages);

void encode(const absl::Status& status, v1::Status* message);
absl::Status decode(const v1::Status& message);  // an unknown code becomes Unknown

}  // namespace gleaner::proto
