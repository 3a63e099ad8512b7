#include "tests/unit/ranks/affinity.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace gleaner::ranks {
namespace {

uint32_t common_prefix(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const size_t most = std::min(a.size(), b.size());
  uint32_t length = 0;
  while (length < most && a[length] == b[length]) ++length;
  return length;
}

// The number of hosts in each group of a grouping, and in both a group of one and a group of another grouping.
std::vector<uint32_t> sizes_of(const std::vector<uint32_t>& groups) {
  std::vector<uint32_t> sizes(*std::max_element(groups.begin(), groups.end()) + size_t{1}, 0);
  for (const uint32_t group : groups) ++sizes[group];
  return sizes;
}

double entropy(const std::vector<uint32_t>& sizes, double hosts) {
  double sum = 0;
  for (const uint32_t size : sizes) {
    if (size > 0) sum -= size / hosts * std::log(size / hosts);
  }
  return sum;
}

double mutual_information(const std::vector<uint32_t>& a, const std::vector<uint32_t>& a_sizes,
                          const std::vector<uint32_t>& b, const std::vector<uint32_t>& b_sizes) {
  const auto hosts = static_cast<double>(a.size());
  std::vector<uint32_t> both(a_sizes.size() * b_sizes.size(), 0);
  for (size_t host = 0; host < a.size(); ++host) ++both[a[host] * b_sizes.size() + b[host]];
  double sum = 0;
  for (size_t i = 0; i < a_sizes.size(); ++i) {
    for (size_t j = 0; j < b_sizes.size(); ++j) {
      const double n = both[i * b_sizes.size() + j];
      if (n > 0) sum += n / hosts * std::log(hosts * n / (static_cast<double>(a_sizes[i]) * b_sizes[j]));
    }
  }
  return sum;
}

// Returns the mean mutual information of all groupings with these sizes (Vinh, Epps and Bailey 2010, Eq. 24a).
double expected_information(const std::vector<uint32_t>& a_sizes, const std::vector<uint32_t>& b_sizes,
                            uint32_t hosts) {
  std::vector<double> log_factorial(hosts + size_t{1}, 0);
  for (uint32_t i = 2; i <= hosts; ++i) log_factorial[i] = log_factorial[i - 1] + std::log(i);
  double sum = 0;
  for (const uint32_t a : a_sizes) {
    for (const uint32_t b : b_sizes) {
      for (uint32_t n = std::max(1u, a + b > hosts ? a + b - hosts : 0); n <= std::min(a, b); ++n) {
        const double log_probability = log_factorial[a] + log_factorial[b] + log_factorial[hosts - a] +
                                       log_factorial[hosts - b] - log_factorial[hosts] - log_factorial[n] -
                                       log_factorial[a - n] - log_factorial[b - n] - log_factorial[hosts - a - b + n];
        const double ratio = static_cast<double>(hosts) * n / (static_cast<double>(a) * b);
        sum += static_cast<double>(n) / hosts * std::log(ratio) * std::exp(log_probability);
      }
    }
  }
  return sum;
}

}  // namespace

absl::StatusOr<double> affinity_accuracy(const Distances& distances, const std::vector<std::vector<uint32_t>>& places) {
  const uint32_t hosts = distances.hosts();
  if (places.size() != hosts) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", places.size(), " places for ", hosts, " hosts"));
  }
  uint64_t defined = 0, right = 0;
  std::vector<uint32_t> shared(hosts);
  for (uint32_t c = 0; c < hosts; ++c) {
    for (uint32_t a = 0; a < hosts; ++a) shared[a] = common_prefix(places[a], places[c]);
    for (uint32_t a = 0; a < hosts; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        if (a == c || b == c || shared[a] == shared[b]) continue;
        const uint32_t near = shared[a] > shared[b] ? a : b, far = a + b - near;
        ++defined;
        right += distances.at(near, c) < distances.at(far, c);
      }
    }
  }
  if (defined == 0) {
    return absl::InvalidArgumentError("the places do not tell which of two hosts is nearer to a third");
  }
  return static_cast<double>(right) / static_cast<double>(defined);
}

double adjusted_mutual_information(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const auto hosts = static_cast<uint32_t>(a.size());
  const std::vector<uint32_t> a_sizes = sizes_of(a), b_sizes = sizes_of(b);
  const double mean_entropy = (entropy(a_sizes, hosts) + entropy(b_sizes, hosts)) / 2;
  const double expected = expected_information(a_sizes, b_sizes, hosts);
  // Both groupings are one group, or both have one host in each group.
  if (std::abs(mean_entropy - expected) < 1e-12) return 1;
  return (mutual_information(a, a_sizes, b, b_sizes) - expected) / (mean_entropy - expected);
}

}  // namespace gleaner::ranks
