// Accesses finds operations that touch the same memory without an order between them, as a race detector does. It
// compares clocks, not times, so a mistake is found whichever operation ran first. A *clock* tells for a point of a
// stream, or for the host, which operations of each stream have certainly ended there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gleaner::cuda_double {

class Clock {
 public:
  void reach(uint64_t stream, uint64_t position) { ended_[stream] = position; }
  void join(const Clock& other);
  bool covers(uint64_t stream, uint64_t position) const;

 private:
  std::map<uint64_t, uint64_t> ended_;  // the last position of each stream
};

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

struct Access {
  Range range;
  bool is_write = false;
  bool is_host = false;  // host memory
  uint64_t stream = 0;
  uint64_t position = 0;
};

class Accesses {
 public:
  // Adds an access by an operation with this clock, and the findings of it.
  void add(const Access& access, const Clock& clock);
  // Returns whether an operation touches the memory whose end the host has not seen.
  bool touch(const Range& range) const;
  // Drops the accesses whose end the host has seen.
  void forget(const Clock& host);

  void find(const std::string& finding) { findings_.push_back(finding); }
  std::vector<std::string> take_findings() { return std::exchange(findings_, {}); }

 private:
  std::vector<Access> accesses_;
  std::vector<std::string> findings_;
};

}  // namespace gleaner::cuda_double
