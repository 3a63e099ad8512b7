#include "tests/unit/api/samples.h"

namespace gleaner::api {
namespace {

ObjectMeta meta(const char* name, const char* ns) {
  ObjectMeta meta;
  meta.name = name;
  meta.ns = ns;
  meta.labels = {{"team", "vision"}};
  meta.annotations = {{"example.org/note", "filled by a test"}};
  return meta;
}

Condition condition(const char* type, int64_t second) {
  return {.type = type,
          .status = true,
          .reason = "AllThere",
          .message = "4 of 4 are there",
          .last_transition = absl::FromUnixSeconds(1769860800 + second),
          .observed_generation = 7};
}

RankMap rank_map() {
  return {.attempt = 9,
          .order = RankOrder::kTopology,
          .workers = {2, 0, 1, 3},
          .message = "2 racks; a ring crosses their uplinks twice instead of four times",
          .groups = {{.name = "zone-a/rack-1", .workers = {0, 1}, .uplink_bits_per_second = 4e10},
                     {.name = "", .workers = {2, 3}}},
          .ring = RingTimes{.identity_seconds = 0.0042, .seconds = 0.0021}};
}

}  // namespace

TrainingJob filled_job() {
  TrainingJob job;
  job.meta = meta("filled", "default");
  job.workers = {.replicas = 4,
                 .local_ranks = 2,
                 .pod_template = {{"metadata", {{"annotations", {{"kubernetes.io/egress-bandwidth", "100M"}}}}},
                                  {"spec",
                                   {{"restartPolicy", "Never"},
                                    {"nodeSelector", {{"gpu", "yes"}}},
                                    {"containers", {{{"name", "train"}, {"image", "example:1"}}}}}}}};
  job.communication = {
      .strategy = Strategy::kAuto,
      .bits = Bits::kSchedule,
      .rank_map = RankOrder::kIdentity,
      .transport = Transport::kTcp,
      .partition_bytes = 262144,
      .compression = Compression::kBf16,
      .fusion_bytes = 4194304,
      .summers = {.min = 1,
                  .max = 3,
                  .resources = {{"requests", {{"cpu", "250m"}}}, {"limits", {{"cpu", "2"}, {"memory", "1Gi"}}}},
                  .bits_per_second = 2.5e9}};
  job.run_policy = {.backoff_limit = 5,
                    .active_deadline = absl::Seconds(3600),
                    .start_deadline = absl::Seconds(90),
                    .clean_pod_policy = CleanPodPolicy::kAll,
                    .ttl_after_finished = absl::Seconds(120),
                    .suspend = true};
  job.status.observed_generation = 6;
  job.status.phase = "Running";
  job.status.conditions = {condition("Created", 1), condition("Running", 2)};
  job.status.workers_wanted = 4;
  job.status.workers_ready = 2;
  job.status.workers_succeeded = 1;
  job.status.succeeded_indexes = {0, 2, 3};
  job.status.workers_failed = 8;
  job.status.summers_ready = 3;
  job.status.summers = {.wanted = 2,
                        .had = 1,
                        .reason = "WorthIt",
                        .message = "one more buys 3.0 % of the step",
                        .last_change = "summer-4 removed: OwnersNeedIt",
                        .last_change_time = absl::FromUnixSeconds(1769860815)};
  job.status.next_summer = 5;
  job.status.selector = "gleaner.dev/job=filled,gleaner.dev/role=worker";
  job.status.attempt = 9;
  job.status.restarts = 10;
  job.status.retries = 2;
  job.status.epoch = 11;
  job.status.communication.rank_map = rank_map();
  job.status.communication.strategy = "summers, halving-doubling";
  job.status.communication.bits = "Schedule";
  job.status.communication.bound = "59.6 ms";
  job.status.communication.goodput = "12.3 MB/s";
  job.status.communication.efficiency = "97.2 %";
  job.status.start_time = absl::FromUnixSeconds(1769860810);
  job.status.next_start_time = absl::FromUnixSeconds(1769860815);
  job.status.completion_time = absl::FromUnixSeconds(1769860820);
  return job;
}

NodeProfile filled_profile() {
  NodeProfile profile;
  profile.meta = meta("filled", "");
  NodeProfileStatus& status = profile.status;
  status.observed_time = absl::FromUnixSeconds(1769860830);
  status.agent_version = "1.2.3";
  status.cpus = 64;
  status.memory_bytes = 274877906944;
  status.numa_nodes = 2;
  status.nics = {{.name = "eth0",
                  .driver = "mlx5_core",
                  .pci_address = "0000:3b:00.0",
                  .pci_switch = "0000:3a:00.0",
                  .numa_node = 1,
                  .bits_per_second = 25e9,
                  .speed_source = SpeedSource::kSysfs,
                  .rdma_device = "mlx5_0",
                  .default_route = true}};
  status.gpus = {{.uuid = "GPU-1",
                  .model = "H200",
                  .pci_address = "0000:3c:00.0",
                  .memory_bytes = 150754820096,
                  .numa_node = 3,
                  .pci_switch = "0000:3a:00.0",
                  .nvlink_group = 2,
                  .nvlink_bits_per_second = 36e11,
                  .mig = true,
                  .mig_instances = 7}};
  status.nvlinks = {{{.gpus = {"GPU-1", "GPU-2"}, .links = 4, .bits_per_second = 8e11}}};
  status.paths = {{.gpu = "GPU-1", .nic = "eth0", .type = PathType::kPix}};
  status.bits_per_second = 24e9;
  status.speed_source = SpeedSource::kLabel;
  status.used_cpus = 3.5;
  status.used_bits_per_second = 1.25e9;
  status.cpu_pressure = 1.5;
  status.spare = {.cpus = 12.25, .memory_bytes = 17179869184, .bits_per_second = 21.3e9};
  status.peers = {{.node = "n2",
                   .round_trip = absl::Nanoseconds(31416),
                   .lost_percent = 2,
                   .observed_time = absl::FromUnixSeconds(1769860825)}};
  status.peer_bandwidths = {
      {.node = "n3", .bits_per_second = 9.4e9, .observed_time = absl::FromUnixSeconds(1769860820)}};
  status.conditions = {condition("Ready", 3)};
  return profile;
}

Topology filled_topology() {
  Topology topology;
  topology.meta = meta(kTopologyName, "");
  topology.uplinks = {{.level = "topology.kubernetes.io/rack", .group = "rack-1", .bits_per_second = 1e11}};
  topology.status.node_count = 40;
  topology.status.groups = {{.name = "zone-a/rack-1",
                             .level = "topology.kubernetes.io/rack",
                             .parent = "zone-a",
                             .nodes = {"n1", "n2"},
                             .node_count = 2,
                             .uplink_bits_per_second = 4e11,
                             .uplink_source = UplinkSource::kStated,
                             .latency_seconds = 2.1e-5}};
  topology.status.conditions = {condition("Ready", 4)};
  topology.status.latency_seconds = 4.3e-5;
  return topology;
}

ReductionPlan filled_plan() {
  ReductionPlan plan;
  plan.meta = meta("filled", "default");
  plan.spec.epoch = 3;
  plan.spec.attempt = 2;
  plan.spec.strategy = "summers, blueconnect 2,3";
  plan.spec.bits = "RankOrder";
  plan.spec.other_bits = {"Schedule", "ring", 0.0012, 0.0019};
  plan.spec.strategies = {{"summers", 20, 98304}, {"blueconnect 2,3", 140, 4096}};
  plan.spec.schedules = {{.algorithm = "blueconnect", .stages = {2, 3}, .radix = 7, .ranks = {8, 1}}};
  plan.spec.rank_map = rank_map();
  plan.spec.rank_map->workers.clear();
  plan.spec.tensors = 160;
  plan.spec.partitions = 420;
  plan.spec.bytes_per_step = 102228128;
  plan.spec.push_bytes_per_step = 204456256;
  plan.spec.dense_bytes_per_step = 204456258;
  plan.spec.bound_seconds = 0.0596;
  plan.spec.bound_without_summers_seconds = 0.0817;
  plan.spec.members = {{.name = "worker-0",
                        .role = "worker",
                        .rank = 2,
                        .pod = "filled-worker-0",
                        .node = "n1",
                        .address = "10.244.1.2:7071",
                        .transports = {"shm:1f3a9c2b", "tcp"},
                        .bits_per_second = 1e8,
                        .bandwidth_assumed = true,
                        .owned_bytes = 51114064,
                        .traffic_bytes = 102228129,
                        .binds = true,
                        .acknowledged_epoch = 4,
                        .slow = "a step takes 510.0 ms with it and 11.0 ms without it"}};
  plan.status = {.acknowledged = 5,
                 .committed_epoch = 6,
                 .steps = 1000,
                 .step_communication_seconds = 0.0613,
                 .goodput_bytes_per_second = 1667669298,
                 .efficiency = 0.972,
                 .packs = "all gradients in one; they are predicted to be averages 20 ms after the first of a step",
                 .efficiency_basis = "bandwidth"};
  return plan;
}

}  // namespace gleaner::api
