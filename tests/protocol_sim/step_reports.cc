#include "tests/protocol_sim/step_reports.h"

#include "coordinator/measure/step_times.h"
#include "tests/protocol_sim/strategies.h"

namespace gleaner::sim {

using coordinator::StepTimes;

double StepReports::draw_seconds(World& world, bool is_two_level) {
  if (!is_two_level) return world.dice.chance(0.8) ? 1e3 : 1e-9;
  if (world.dice.chance(0.7)) is_slow_ = !is_slow_;
  return step_seconds_ /= 2;
}

void StepReports::send(World& world, Control& control) {
  const bool is_two_level = tunes_masters(world.scenario.job);
  const double seconds = draw_seconds(world, is_two_level);
  const auto windows = world.dice.pick<uint32_t>({2, 3, 6});  // a change needs two, and later changes more
  world.report->trace(world.events.now(), "by ", windows, " measurements a step takes ", seconds, " s");
  control.order([&](Control::Core& core, absl::Duration now, coordinator::Actions& actions) {
    const plan::Plan& plan = core.plan();
    uint64_t bytes = 0;
    for (const plan::Tensor& tensor : plan.tensors) bytes += tensor.bytes();
    for (uint32_t i = 0; i <= windows; ++i) {
      steps_ += StepTimes::kSteps;
      seconds_ += static_cast<double>(StepTimes::kSteps) * seconds;
      coordinator::Report report = report_of_message_times();
      report.measured = {
          {.epoch = plan.epoch, .steps = steps_, .bytes = steps_ * bytes, .communication_seconds = seconds_}};
      for (uint32_t rank = 0; rank < core.roster().ranks(); ++rank) {
        if (!core.roster()[rank].takes_part()) continue;
        if (is_two_level) report.link_bits_per_second = rank == 0 && is_slow_ ? 2e9 : 5e9;
        const coordinator::StreamId stream = core.roster()[rank].stream;
        core.on_report(stream, report, now + StepTimes::kFirstTime + i * StepTimes::kTime, actions);
        core.on_heartbeat(stream, now);  // the reports are ahead, but a worker that stops must be missed in time
      }
    }
  });
}

}  // namespace gleaner::sim
