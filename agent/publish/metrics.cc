#include "agent/publish/metrics.h"

#include "common/metrics/following.h"

namespace gleaner::publish {
namespace {

using metrics::add_gauge;

prometheus::Counter& add_writes(prometheus::Registry& registry, const std::string& node, const char* result) {
  return prometheus::BuildCounter()
      .Name("gleaner_node_profile_writes_total")
      .Help("Writes of the node's profile, by result")
      .Register(registry)
      .Add({{"node", node}, {"result", result}});
}

}  // namespace

Metrics::Metrics(prometheus::Registry& registry, const std::string& node)
    : cpus_(add_gauge(registry, {{"node", node}}, "gleaner_node_cpus", "Hardware threads of the machine")),
      bits_per_second_(add_gauge(registry, {{"node", node}}, "gleaner_node_bits_per_second",
                                 "Speed to other machines each way; 0: not known")),
      used_cpus_(add_gauge(registry, {{"node", node}}, "gleaner_node_used_cpus", "CPUs in use now, summers included")),
      used_bits_per_second_(add_gauge(registry, {{"node", node}}, "gleaner_node_used_bits_per_second",
                                      "Bandwidth in use now, the busier direction, summers included")),
      pressure_(add_gauge(registry, {{"node", node}}, "gleaner_node_cpu_pressure_percent",
                          "Share of the last 10 s in which a task waited for a CPU; -1: not known")),
      spare_cpus_(add_gauge(registry, {{"node", node}}, "gleaner_node_spare_cpus", "CPUs to spare, smoothed")),
      spare_memory_bytes_(
          add_gauge(registry, {{"node", node}}, "gleaner_node_spare_memory_bytes", "Memory to spare, smoothed")),
      spare_bits_per_second_(add_gauge(registry, {{"node", node}}, "gleaner_node_spare_bits_per_second",
                                       "Bandwidth to spare each way, smoothed")),
      summers_cpus_(add_gauge(registry, {{"node", node}}, "gleaner_node_summers_cpus", "CPUs that summers use now")),
      summers_bits_per_second_(add_gauge(registry, {{"node", node}}, "gleaner_node_summers_bits_per_second",
                                         "Bandwidth that summers use now, the busier direction")),
      speed_known_(add_gauge(registry, {{"node", node}}, "gleaner_node_speed_known",
                             "1: the speed is known, and nothing contradicts it; 0: else")),
      gpus_(add_gauge(registry, {{"node", node}}, "gleaner_node_gpus", "GPUs of the machine")),
      nvml_failures_(add_gauge(registry, {{"node", node}}, "gleaner_node_nvml_failures",
                               "GPUs, and fields of GPUs, that NVML failed to read")),
      writes_(add_writes(registry, node, "ok")),
      failed_writes_(add_writes(registry, node, "error")) {}

void Metrics::show(const api::NodeProfileStatus& status, const spare::Estimate& estimate, size_t nvml_failures) {
  cpus_.Set(status.cpus);
  bits_per_second_.Set(status.bits_per_second);
  used_cpus_.Set(status.used_cpus);
  used_bits_per_second_.Set(status.used_bits_per_second);
  pressure_.Set(status.cpu_pressure);
  spare_cpus_.Set(status.spare.cpus);
  spare_memory_bytes_.Set(static_cast<double>(status.spare.memory_bytes));
  spare_bits_per_second_.Set(status.spare.bits_per_second);
  summers_cpus_.Set(estimate.summers_cpus);
  summers_bits_per_second_.Set(estimate.summers_bits_per_second);
  speed_known_.Set(api::holds(status.conditions, "SpeedKnown") ? 1 : 0);
  gpus_.Set(static_cast<double>(status.gpus.size()));
  nvml_failures_.Set(static_cast<double>(nvml_failures));
}

void Metrics::count_write(const absl::Status& status) { (status.ok() ? writes_ : failed_writes_).Increment(); }

}  // namespace gleaner::publish
