// Finds the NICs of a node that carry a worker's gradients, and their speed. Pure.
//
// A worker listens on the IP address of its pod, whose traffic leaves by the node's default route. Only the job can
// name other NICs: by GLEANER_RDMA_DEVICE in the first container of its template (docs/rdma.md, "Which device").
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/api/node_profile.h"
#include "common/api/training_job.h"

namespace gleaner::reconcile {

using DeviceSpeeds = std::map<std::string, double>;  // bits per second each way, by the RDMA device's name

// Returns the speeds that the profile has of its RDMA devices. Of several NICs of a device, such as its ports, the
// fastest counts.
DeviceSpeeds rdma_speeds(const api::NodeProfileStatus& profile);

// Returns the RDMA devices that the job names, without their ports. Empty: it names none, by value, or its transport
// excludes RDMA.
std::vector<std::string> rdma_devices_of(const api::TrainingJob& job);

// Returns the speed of a worker on a node: that of all devices together, since payloads go by all that are named; or
// that of the default route, if `devices` is empty or the speed of one of them is unknown.
double worker_bits_per_second(const std::vector<std::string>& devices, const DeviceSpeeds& speeds,
                              double default_route_bits_per_second);

}  // namespace gleaner::reconcile
