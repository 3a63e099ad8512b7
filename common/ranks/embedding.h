// Embeds hosts in a space in which distances agree with measured ones, so that errors of single measurements average
// out: hosts that are both near to others come near each other. Source: Luo §4.2.1, Eq. 4.1 (ProbeEmbed). Pure.
//
// The embedding has a point v_i and a height h_i >= 0 for each host and minimizes the sum over pairs of
//   ( |v_i - v_j|^alpha + h_i + h_j - p_ij )²
// by the Adam algorithm, where p_ij is the measured distance. alpha = 1 fits distances as they are. alpha = 2 compacts
// long distances, which makes groups of near hosts more distinct. The height takes up what a host adds to all its
// measurements, for example in its network stack.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::ranks {

// Distances between `hosts` hosts, such as latencies, in any unit.
class Distances {
 public:
  explicit Distances(uint32_t hosts) : hosts_(hosts), values_(size_t{hosts} * hosts, 0) {}

  uint32_t hosts() const { return hosts_; }
  double& at(uint32_t from, uint32_t to) { return values_[size_t{from} * hosts_ + to]; }
  double at(uint32_t from, uint32_t to) const { return values_[size_t{from} * hosts_ + to]; }

 private:
  uint32_t hosts_;
  std::vector<double> values_;
};

struct EmbeddingOptions {
  double alpha = 2;         // from 1 to 2
  uint32_t dimensions = 3;  // fewer remove more noise
  bool heights = true;      // false: all heights are 0
  uint32_t steps = 600;     // of Adam
  uint64_t seed = 1;
};

// The points of hosts; the unit is that of the distances, to the power of 1 / alpha.
struct Embedding {
  // Returns the square of the distance between two hosts.
  double square(uint32_t a, uint32_t b) const;
  // Returns |v_a - v_b|^alpha for all pairs. Heights are left out, as they say nothing about where a host is.
  Distances distances(double alpha) const;

  uint32_t hosts = 0;
  uint32_t dimensions = 0;
  std::vector<double> points;   // by host, then dimension
  std::vector<double> heights;  // by host
};

// Embeds hosts by their distances, of which the two directions of a pair count as one by their mean. InvalidArgument
// names the option or the pair that is out of range; a distance is >= 0 and finite.
absl::StatusOr<Embedding> embed(const Distances& distances, const EmbeddingOptions& options);

}  // namespace gleaner::ranks
