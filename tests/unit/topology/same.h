// Compares topologies field by field.
#pragma once

#include <gtest/gtest.h>

#include "common/topology/topology.h"

namespace gleaner::topology {

inline void expect_same(const Topology& one, const Topology& two) {
  ASSERT_EQ(one.host_count(), two.host_count());
  for (uint32_t i = 0; i < one.host_count(); ++i) {
    EXPECT_EQ(one.hosts()[i].name, two.hosts()[i].name);
    EXPECT_EQ(one.hosts()[i].place, two.hosts()[i].place);
    EXPECT_EQ(one.hosts()[i].overhead_seconds, two.hosts()[i].overhead_seconds);
  }
  ASSERT_EQ(one.switches().size(), two.switches().size());
  for (size_t i = 0; i < one.switches().size(); ++i) EXPECT_EQ(one.switches()[i].name, two.switches()[i].name);
  ASSERT_EQ(one.links().size(), two.links().size());
  for (size_t i = 0; i < one.links().size(); ++i) {
    EXPECT_EQ(one.links()[i].a, two.links()[i].a);
    EXPECT_EQ(one.links()[i].b, two.links()[i].b);
    EXPECT_EQ(one.links()[i].bits_per_second, two.links()[i].bits_per_second);
    EXPECT_EQ(one.links()[i].back_bits_per_second, two.links()[i].back_bits_per_second);
    EXPECT_EQ(one.links()[i].latency_seconds, two.links()[i].latency_seconds);
  }
}

}  // namespace gleaner::topology
