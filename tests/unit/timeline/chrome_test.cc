// Tests that the merged trace has the Trace Event Format that viewers expect.
#include "cli/timeline/chrome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tests/unit/timeline/recorded.h"

namespace gleaner::cli {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::IsSupersetOf;

json merged(const Recorded& job) {
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  std::vector<StepPath> paths;
  for (const Step& step : steps) paths.push_back(walk(timeline, step));
  std::string text;
  write_chrome_trace(timeline, steps, paths,
                     [&text](absl::string_view piece) { text.append(piece.data(), piece.size()); });
  json parsed = json::parse(text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << text;
  return parsed;
}

Recorded two_steps() {
  Recorded job(2, 1, {2, 0});
  for (uint64_t step = 0; step < 2; ++step) {
    const double begin = 100.0 * static_cast<double>(step) + 50;
    job.push_pull(0, step, {begin, begin + 1}, 1, 2, 1);
    job.push_pull(1, step, {begin + 0.5, begin + 1.5}, 1, 2, 1);
  }
  return job;
}

std::vector<json> slices(const json& trace, const std::string& track) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == track) found.push_back(event);
  }
  return found;
}

TEST(Chrome, ProcessesAndTracksHaveNames) {
  const json trace = merged(two_steps());
  std::map<int, std::string> processes;
  std::set<std::string> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
  }
  const std::map<int, std::string> expected = {{0, "steps"}, {1, "worker 0"}, {2, "worker 1"}, {3, "summer 0"}};
  EXPECT_EQ(processes, expected);
  EXPECT_THAT(tracks, IsSupersetOf({"1 push_pull", "2 queue", "3 push to summer 0", "3 push to worker 0",
                                    "4 pull from summer 0", "5 gather", "6 sum", "1 steps", "2 critical path"}));
}

TEST(Chrome, SlicesOfATrackNeverOverlap) {
  const json trace = merged(two_steps());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"], 0);
    tracks[{event["pid"], event["tid"]}].emplace_back(event["ts"], event["dur"]);
  }
  EXPECT_GT(tracks.size(), 8u);
  size_t several = 0;
  for (auto& [track, intervals] : tracks) {
    several += intervals.size() > 1;
    for (size_t i = 1; i < intervals.size(); ++i) {
      EXPECT_GE(intervals[i].first, intervals[i - 1].first + intervals[i - 1].second - 1e-3);
    }
  }
  EXPECT_GT(several, 0u);
}

TEST(Chrome, SlicesHaveNames) {
  const json trace = merged(two_steps());
  const auto pushes = slices(trace, "3 push to summer 0");
  ASSERT_EQ(pushes.size(), 4u) << "two workers, two steps";
  EXPECT_EQ(pushes[0]["name"], "tensor 0 #0");
  EXPECT_EQ(pushes[0]["args"],
            json::parse(R"({"tensor": "tensor 0", "step": 0, "partition": 0, "owner": "summer 0", "bytes": 1024})"));
  EXPECT_NEAR(pushes[0]["dur"], 2000, 1);
  const auto gathers = slices(trace, "5 gather");
  ASSERT_EQ(gathers.size(), 4u);
  EXPECT_EQ(gathers[0]["args"]["last"], "worker 1");
  EXPECT_EQ(slices(trace, "6 sum").size(), 4u);
  EXPECT_EQ(slices(trace, "1 steps").size(), 2u);
  std::vector<std::string> path;
  for (const json& segment : slices(trace, "2 critical path")) path.push_back(segment["name"]);
  EXPECT_THAT(path, Contains("wait for worker 1"));
}

TEST(Chrome, ArrowsJoinSendsWithReceives) {
  Recorded job(2, 0, {0});
  job.ring(0, 0, 0, {10, 10}, 3, 4, 5);
  job.ring(0, 1, 1, {71, 71}, 3, 4, 5);
  const json trace = merged(job);
  EXPECT_EQ(slices(trace, "3 schedule").size(), 4u) << "two workers, two steps";
  const auto sends = slices(trace, "4 send to worker 1");
  ASSERT_EQ(sends.size(), 4u);
  EXPECT_EQ(sends[1]["name"], "tensor 0 #0");
  EXPECT_EQ(sends[1]["args"], json::parse(R"({"tensor": "tensor 0", "step": 0, "partition": 0, "schedule": "ring",
                                              "schedule_step": 1, "chunk": 1, "bytes": 512})"));
  EXPECT_NEAR(sends[1]["dur"], 4000, 1);
  const auto receives = slices(trace, "5 receive from worker 0");
  ASSERT_EQ(receives.size(), 4u);
  EXPECT_EQ(receives[0]["args"]["operation"], "add");
  EXPECT_EQ(receives[1]["args"]["operation"], "copy");
  // Each arrow begins at a send on one worker and ends at a receive on the other one.
  std::map<int, std::pair<json, json>> arrows;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") arrows[event["id"]].first = event;
    if (event["ph"] == "f") arrows[event["id"]].second = event;
  }
  ASSERT_EQ(arrows.size(), 8u);
  for (const auto& [id, ends] : arrows) {
    EXPECT_NE(ends.first["pid"], ends.second["pid"]);
    EXPECT_NEAR(ends.second["ts"].get<double>() - ends.first["ts"].get<double>(), 4000, 1);
  }
}

// Returns the least time of all slices and arrows, in milliseconds.
double earliest(const json& trace) {
  double least = 1e300;
  for (const json& event : trace["traceEvents"]) {
    if (event.contains("ts")) least = std::min(least, event["ts"].get<double>() / 1000);
  }
  return least;
}

TEST(Chrome, TimesBeginAtZero) {
  EXPECT_NEAR(earliest(merged(two_steps())), 0, 1e-6) << "the first request comes before the first frame";

  Recorded late(2, 1, {0, 2});  // worker 1 makes requests long before worker 0 does
  late.push_pull(1, 0, {250, 50}, 1, 2, 1);
  EXPECT_NEAR(earliest(merged(late)), 0, 1e-6);

  Recorded ahead(2, 0, {0});
  ahead.set_ahead(0, 5000);
  ahead.set_ahead(1, -7000);
  ahead.ring(0, 0, 0, {10, 40}, 3, 4, 5);
  EXPECT_NEAR(earliest(merged(ahead)), 0, 1e-6);
}

// Checks that each arrow has a begin, and a later end, and returns the number of arrows.
size_t check_arrows(const json& trace) {
  std::map<int, double> begins, ends;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") begins[event["id"]] = event["ts"];
    if (event["ph"] == "f") ends[event["id"]] = event["ts"];
  }
  EXPECT_EQ(begins.size(), ends.size());
  for (const auto& [id, begin] : begins) {
    EXPECT_TRUE(ends.contains(id)) << id;
    EXPECT_GE(ends[id], begin) << id;
  }
  return begins.size();
}

// Returns a ring's push_pull without the events that `drop(rank, event)` names.
Recorded ring_without(const std::function<bool(uint32_t, const trace::Event&)>& drop) {
  Recorded job(2, 0, {0});
  job.ring(0, 0, 0, {10, 10}, 3, 4, 5);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::erase_if(job.trace.ranks[rank].recording.events, [&](const trace::Event& event) { return drop(rank, event); });
  }
  return job;
}

TEST(Chrome, ArrowsHaveBothEnds) {
  using trace::Kind;
  const auto send_lost = [](uint32_t rank, const trace::Event& event) {
    return rank == 0 && event.kind == Kind::kSliceSent && event.schedule_step == 0;
  };
  EXPECT_EQ(check_arrows(merged(ring_without(send_lost))), 3u);
  const auto receive_lost = [](uint32_t rank, const trace::Event& event) {
    return rank == 1 && event.kind == Kind::kSliceCopied;
  };
  EXPECT_EQ(check_arrows(merged(ring_without(receive_lost))), 3u);
  // The recording ends while slices are under way.
  const auto ended = [](uint32_t, const trace::Event& event) { return event.nanoseconds > 22'000'000; };
  EXPECT_EQ(check_arrows(merged(ring_without(ended))), 2u);
  EXPECT_EQ(check_arrows(merged(ring_without([](uint32_t, const trace::Event&) { return false; }))), 4u);
}

TEST(Chrome, ArrowsNeverLeadBackInTime) {
  // One clock is wrong by less than the frames take, in both directions by turns, so a receive seems to begin early.
  Recorded job(2, 0, {0});
  job.ring(0, 0, 0, {10, 10}, 3, 4, 1);
  for (uint64_t step = 1; step < 4; ++step) {
    const double begin = 10 + 100.0 * static_cast<double>(step);
    job.set_ahead(1, step % 2 == 0 ? 6 : -6);
    job.ring(0, step, step, {begin, begin}, 3, 4, 1);
  }
  EXPECT_EQ(check_arrows(merged(job)), 16u);
}

TEST(Chrome, CopiesOfGpusHaveTracks) {
  Recorded job(2, 1, {2});
  job.gpu_push_pull(0, 0, 0, 5);
  const json trace = merged(job);
  for (const auto& [track, begin, length] : {std::tuple("7 copy out", 6, 2), std::tuple("8 copy in", 24, 6)}) {
    const std::vector<json> found = slices(trace, track);
    ASSERT_EQ(found.size(), 2u) << track;
    EXPECT_NEAR(found[0]["ts"], 1000 * begin, 1);
    EXPECT_NEAR(found[0]["dur"], 1000 * length, 1);
    EXPECT_EQ(found[0]["args"]["bytes"], 1024);
  }
  EXPECT_NEAR(slices(trace, "1 push_pull")[0]["dur"], 30'000, 1) << "until the result is on the GPU";
  EXPECT_THAT(slices(merged(two_steps()), "7 copy out"), testing::IsEmpty());
}

TEST(Chrome, NamesOfAnyBytesMakeValidJson) {
  Recorded job = two_steps();
  job.trace.plan.tensors[0].name = "quote \" and \xff";
  EXPECT_FALSE(merged(job).is_discarded());
}

}  // namespace
}  // namespace gleaner::cli
