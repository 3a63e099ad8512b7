#include "cli/timeline/chrome.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/timeline/receives.h"

namespace gleaner::cli {
namespace {

using nlohmann::ordered_json;
using Write = std::function<void(absl::string_view)>;

// An arrow leads from one slice to another one ("flow event").
enum class Arrow : uint8_t { kNone, kBegins, kEnds };

struct Slice {
  Time begin = 0;
  Time end = 0;
  std::string name;
  ordered_json args;
  Arrow arrow = Arrow::kNone;
  uint64_t arrow_id = 0;
};

// Returns whether both ends of a slice are known.
bool is_whole(Time begin, Time end) { return begin != kNever && end != kNever; }

// Collects the slices of one process by track.
class Process {
 public:
  // Adds a slice, unless one of its ends is unknown. Since clocks are uncertain, the end may be before the begin; such
  // a slice gets the length 0. The arrow `arrow_id` may begin or end there.
  void add(const std::string& track, Time begin, Time end, std::string name, ordered_json args, uint64_t arrow_id = 0,
           Arrow arrow = Arrow::kNone) {
    if (!is_whole(begin, end)) return;
    tracks_[track].push_back({begin, std::max(begin, end), std::move(name), std::move(args), arrow, arrow_id});
  }
  std::map<std::string, std::vector<Slice>>& tracks() { return tracks_; }

 private:
  std::map<std::string, std::vector<Slice>> tracks_;
};

class Writer {
 public:
  explicit Writer(const Write& write) : write_(write) { write_("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"); }
  ~Writer() { write_("\n]}\n"); }

  void process(uint32_t pid, const std::string& name, Process& process) {
    event({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", name}}}});
    event({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", pid}, {"args", {{"sort_index", pid}}}});
    uint32_t tid = 0;
    for (auto& [track, slices] : process.tracks()) tid = lay_out(pid, tid, track, slices);
  }

 private:
  // Writes the slices of one track, with as many lanes (tracks of the same name) as slices overlap at most. The lanes
  // get the numbers from tid + 1 on. Returns the last number.
  uint32_t lay_out(uint32_t pid, uint32_t tid, const std::string& track, std::vector<Slice>& slices) {
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    std::vector<Time> free_from;  // by lane: the end of its last slice
    for (const Slice& slice : slices) {
      const auto lane =
          std::find_if(free_from.begin(), free_from.end(), [&slice](Time since) { return since <= slice.begin; });
      const auto number = static_cast<uint32_t>(lane - free_from.begin());
      if (lane == free_from.end()) {
        free_from.push_back(slice.end);
        name_track(pid, tid + number + 1, track);
      } else {
        *lane = slice.end;
      }
      event({{"ph", "X"},
             {"name", slice.name},
             {"cat", track},
             {"pid", pid},
             {"tid", tid + number + 1},
             {"ts", static_cast<double>(slice.begin) / 1000},
             {"dur", static_cast<double>(slice.end - slice.begin) / 1000},
             {"args", slice.args}});
      if (slice.arrow != Arrow::kNone) draw_arrow(pid, tid + number + 1, slice);
    }
    return tid + static_cast<uint32_t>(free_from.size());
  }
  void draw_arrow(uint32_t pid, uint32_t tid, const Slice& slice) {
    const bool begins = slice.arrow == Arrow::kBegins;
    ordered_json arrow = {{"ph", begins ? "s" : "f"},
                          {"id", slice.arrow_id},
                          {"name", "slice"},
                          {"cat", "slice"},
                          {"pid", pid},
                          {"tid", tid},
                          {"ts", static_cast<double>(slice.begin) / 1000}};
    if (!begins) arrow["bp"] = "e";  // the arrow ends at the slice that encloses it
    event(arrow);
  }
  void name_track(uint32_t pid, uint32_t tid, const std::string& name) {
    event({{"ph", "M"}, {"name", "thread_name"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
    event({{"ph", "M"}, {"name", "thread_sort_index"}, {"pid", pid}, {"tid", tid}, {"args", {{"sort_index", tid}}}});
  }
  void event(const ordered_json& event) {
    write_(absl::StrCat(first_ ? "" : ",\n", event.dump(-1, ' ', false, ordered_json::error_handler_t::replace)));
    first_ = false;
  }

  const Write& write_;
  bool first_ = true;
};

std::string track_of(const GpuSpan& span) {
  const Stage stage = stage_of(span);
  const bool of_result = stage == Stage::kCopyIn || stage == Stage::kBroadcast;
  return absl::StrCat(of_result ? "8 " : "7 ", std::string(name_of(stage)));
}

class Merge {
 public:
  explicit Merge(const Timeline& timeline) : timeline_(timeline), processes_(timeline.trace().ranks.size()) {
    for (const auto& [tensor_step, times] : timeline.tensor_steps()) {
      add_requests(tensor_step, times);
      for (uint32_t p = 0; p < times.partitions.size(); ++p) add_partition(tensor_step, times, p);
    }
  }
  std::vector<Process>& processes() { return processes_; }

 private:
  const plan::Plan& plan() const { return timeline_.plan(); }
  uint32_t rank_of(uint32_t member) const {
    return member < plan().workers ? timeline_.leader(member)
                                   : timeline_.leader(plan().workers) + member - plan().workers;
  }
  ordered_json args(const TensorStep& tensor_step) const {
    return {{"tensor", plan().tensors[tensor_step.tensor].name}, {"step", tensor_step.step}};
  }

  void add_requests(const TensorStep& tensor_step, const TensorStepTimes& times) {
    const std::string& name = plan().tensors[tensor_step.tensor].name;
    for (uint32_t rank = 0; rank < times.ranks.size(); ++rank) {
      const RequestTimes& request = times.ranks[rank];
      processes_[rank].add("1 push_pull", request.requested, request.ended(), name, args(tensor_step));
      add_gpu_work(tensor_step, request.gpu, processes_[rank]);
      const uint32_t member = timeline_.trace().ranks[rank].member;
      if (request.ready == kNever || member >= plan().workers) continue;
      Time last = kNever;
      for (const PartitionTimes& partition : times.partitions) {
        last = std::max(last, partition.workers[member].pushed);
        if (!partition.runs.empty()) last = std::max(last, partition.runs[member].begun);
      }
      processes_[rank].add("2 queue", request.ready, last, name, args(tensor_step));
    }
  }
  void add_gpu_work(const TensorStep& tensor_step, const GpuWork& gpu, Process& process) const {
    for (const GpuSpan& span : gpu.spans()) {
      ordered_json about = args(tensor_step);
      about["partition"] = span.partition;
      about["bytes"] = span.bytes;
      const std::string name = absl::StrCat(plan().tensors[tensor_step.tensor].name, " #", span.partition);
      process.add(track_of(span), span.begun, span.ended, name, std::move(about));
    }
  }
  void add_scheduled_partition(const TensorStep& tensor_step, const TensorStepTimes& times, uint32_t p) {
    const PartitionTimes& partition = times.partitions[p];
    const std::string name = absl::StrCat(plan().tensors[tensor_step.tensor].name, " #", p);
    ordered_json about = args(tensor_step);
    about["partition"] = p;
    about["schedule"] = plan().schedules[*times.schedule].algorithm;
    for (uint32_t w = 0; w < partition.runs.size(); ++w) {
      ordered_json all = about;
      all["bytes"] = plan().partitions_of(tensor_step.tensor)[p].bytes;
      Process& worker = processes_[timeline_.leader(w)];
      worker.add("3 schedule", partition.runs[w].begun, partition.runs[w].ended, name, std::move(all));
      const Receives receives(partition, w);
      for (const Receive& receive : receives.all()) {
        add_slice(receive.slice, receive.times, receive.begun, name, about);
      }
    }
  }
  // `begun`: when the receiver began to add or copy the slice. Viewers drop an arrow that lacks an end or leads back in
  // time, so only a slice that is whole at both workers has an arrow, and uncertain clocks do not let its receive begin
  // before its send.
  void add_slice(const SliceKey& slice, const SliceTimes& times, Time begun, const std::string& name,
                 ordered_json about) {
    about["schedule_step"] = slice.schedule_step;
    about["chunk"] = slice.chunk;
    about["bytes"] = times.bytes;
    const bool joined = is_whole(times.sent, times.arrived) && is_whole(begun, times.received);
    if (joined) {
      ++arrows_;
      begun = std::max(begun, times.sent);
    }
    processes_[timeline_.leader(slice.from)].add(absl::StrCat("4 send to ", member_name(plan(), slice.to)), times.sent,
                                                 times.arrived, name, about, arrows_,
                                                 joined ? Arrow::kBegins : Arrow::kNone);
    about["operation"] = times.is_added ? "add" : "copy";
    processes_[timeline_.leader(slice.to)].add(absl::StrCat("5 receive from ", member_name(plan(), slice.from)), begun,
                                               times.received, name, std::move(about), arrows_,
                                               joined ? Arrow::kEnds : Arrow::kNone);
  }
  void add_partition(const TensorStep& tensor_step, const TensorStepTimes& times, uint32_t p) {
    if (times.schedule.has_value()) return add_scheduled_partition(tensor_step, times, p);
    const PartitionTimes& partition = times.partitions[p];
    const uint32_t owner = timeline_.owner(tensor_step, p);
    const std::string name = absl::StrCat(plan().tensors[tensor_step.tensor].name, " #", p);
    const std::string owner_name = member_name(plan(), owner);
    ordered_json about = args(tensor_step);
    about["partition"] = p;
    about["owner"] = owner_name;
    about["bytes"] = plan().partitions_of(tensor_step.tensor)[p].bytes;
    Time first = kNever, last = kNever;
    uint32_t last_worker = 0;
    for (uint32_t w = 0; w < partition.workers.size(); ++w) {
      const ContributionTimes& part = partition.workers[w];
      Process& worker = processes_[timeline_.leader(w)];
      worker.add(absl::StrCat("3 push to ", owner_name), part.pushed, part.contributed, name, about);
      worker.add(absl::StrCat("4 pull from ", owner_name), part.answered, part.result, name, about);
      if (part.contributed == kNever) continue;
      if (first == kNever || part.contributed < first) first = part.contributed;
      if (part.contributed <= last) continue;
      last = part.contributed;
      last_worker = w;
    }
    about["last"] = member_name(plan(), last_worker);
    Process& summer = processes_[rank_of(owner)];
    summer.add("5 gather", first, last, name, about);
    summer.add("6 sum", partition.sum_begun, partition.sum_ended, name, about);
  }

  const Timeline& timeline_;
  std::vector<Process> processes_;  // by rank
  uint64_t arrows_ = 0;             // number of arrows so far
};

void add_step(const Timeline& timeline, const Step& step, const StepPath& path, Process& process) {
  const plan::Plan& plan = timeline.plan();
  process.add("1 steps", step.begin, step.end, absl::StrCat("step ", step.number), {{"step", step.number}});
  for (const Segment& segment : path.segments) {
    const std::string where = member_name(plan, segment.member);
    ordered_json args = {{"member", where}};
    if (segment.to.has_value()) args["to"] = member_name(plan, *segment.to);
    if (segment.tensor_step.has_value()) args["tensor"] = plan.tensors[segment.tensor_step->tensor].name;
    if (segment.partition.has_value()) args["partition"] = *segment.partition;
    process.add(
        "2 critical path", segment.begin, segment.end,
        absl::StrCat(std::string(name_of(segment.stage)), segment.stage == Stage::kWait ? " for " : ": ", where),
        std::move(args));
  }
}

}  // namespace

void write_chrome_trace(const Timeline& timeline, const std::vector<Step>& steps, const std::vector<StepPath>& paths,
                        const Write& write) {
  Writer writer(write);
  Process job;
  for (size_t i = 0; i < steps.size(); ++i) add_step(timeline, steps[i], paths[i], job);
  writer.process(0, "steps", job);
  Merge merge(timeline);
  for (uint32_t rank = 0; rank < merge.processes().size(); ++rank) {
    writer.process(rank + 1, rank_name(timeline.plan(), timeline.trace().ranks[rank]), merge.processes()[rank]);
  }
}

}  // namespace gleaner::cli
