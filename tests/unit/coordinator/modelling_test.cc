#include "coordinator/planning/modelling.h"

#include <gtest/gtest.h>

#include "common/strategy/choice.h"

namespace gleaner::coordinator {
namespace {

plan::Plan plan_of(uint32_t workers) {
  plan::Plan plan;
  plan.workers = workers;
  plan.members.resize(workers, {.bits_per_second = 10e9});
  return plan;
}

Options::Reduction reduction_by(strategy::Strategy strategy) {
  Options::Reduction reduction;
  reduction.strategy = std::move(strategy);
  return reduction;
}

class ModellingTest : public testing::Test {
 protected:
  // Carries out the request that waits.
  void answer(Modelling& modelling) {
    const ModelRequest request = modelling.take_request();
    ASSERT_NE(request, nullptr);
    modelling.on_modelled(request, Modelling::carry_out(*request));
  }
  Modelling auto_{reduction_by(strategy::Auto())};
};

TEST_F(ModellingTest, PlansWaitForTheFirstModels) {
  EXPECT_EQ(*auto_.of(plan_of(8)), nullptr);
  answer(auto_);
  EXPECT_NE(*auto_.of(plan_of(8)), nullptr);
  EXPECT_EQ(auto_.take_request(), nullptr);
}

TEST_F(ModellingTest, OneRequestIsOnItsWayAtATime) {
  auto_.want(plan_of(8));
  const ModelRequest first = auto_.take_request();
  EXPECT_EQ(*auto_.of(plan_of(7)), nullptr);
  EXPECT_EQ(auto_.take_request(), nullptr);
  auto_.on_modelled(first, Modelling::carry_out(*first));
  EXPECT_EQ(*auto_.of(plan_of(7)), nullptr) << "the models are of eight workers";
  answer(auto_);
  EXPECT_NE(*auto_.of(plan_of(7)), nullptr);
}

TEST_F(ModellingTest, AnAnswerToAnotherRoundIsIgnored) {
  Modelling earlier(reduction_by(strategy::Auto()));
  earlier.want(plan_of(8));
  const ModelRequest stale = earlier.take_request();
  auto_.want(plan_of(8));
  auto_.take_request();
  auto_.on_modelled(stale, Modelling::carry_out(*stale));
  EXPECT_EQ(*auto_.of(plan_of(8)), nullptr);
}

TEST_F(ModellingTest, PresentModelsServeWhileTheRoundTripChanges) {
  auto_.set_round_trip(100e-6);
  auto_.want(plan_of(8));
  answer(auto_);
  auto_.set_round_trip(120e-6);
  const auto first = *auto_.of(plan_of(8));
  EXPECT_EQ(auto_.take_request(), nullptr) << "it is similar";
  auto_.set_round_trip(200e-6);
  EXPECT_EQ(*auto_.of(plan_of(8)), first);
  answer(auto_);
  const auto later = *auto_.of(plan_of(8));
  EXPECT_EQ(later->candidates[0].model.latency_seconds, 2 * first->candidates[0].model.latency_seconds);
}

TEST_F(ModellingTest, ModelsAreMadeAnewWhenTheOverheadChanges) {
  const auto request_at = [&](double seconds) {
    auto_.set_message_overhead(seconds);
    auto_.want(plan_of(8));
    const ModelRequest request = auto_.take_request();
    if (request != nullptr) auto_.on_modelled(request, Modelling::carry_out(*request));
    return request == nullptr ? 0 : request->overhead_seconds;
  };
  EXPECT_EQ(request_at(0), strategy::kAssumedOverheadSeconds);
  EXPECT_EQ(request_at(4.1e-6), 0) << "it is similar";
  EXPECT_EQ(request_at(2e-6), 2e-6);
  EXPECT_EQ(request_at(2.9e-6), 0) << "less than a microsecond more";
  EXPECT_EQ(request_at(20e-6), 20e-6);
  EXPECT_EQ(request_at(24e-6), 0) << "less than a quarter more";
}

TEST_F(ModellingTest, TheMeasuredTimesAreToldOnce) {
  EXPECT_EQ(auto_.take_note(), "");
  auto_.set_round_trip(38e-6);
  auto_.set_message_overhead(4.2e-6);
  EXPECT_EQ(auto_.take_note(), "models: a message takes 4.2 us of a processor at each end, a round trip 38 us");
  EXPECT_EQ(auto_.take_note(), "");
}

TEST_F(ModellingTest, AnErrorHoldsForPlansLikeThatOne) {
  Modelling fixed(reduction_by(collective::Spec{"blueconnect", {3, 3}}));
  plan::Plan plan = plan_of(8);
  plan.schedules = {{"blueconnect", {3, 3}}};
  EXPECT_EQ(*fixed.of(plan), nullptr);
  answer(fixed);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(absl::IsInvalidArgument(fixed.of(plan).status()));
  EXPECT_EQ(fixed.take_request(), nullptr) << "it would fail again";
  plan.workers = 9;
  EXPECT_EQ(*fixed.of(plan), nullptr);
  answer(fixed);
  EXPECT_NE(*fixed.of(plan), nullptr);
}

TEST_F(ModellingTest, CutsDoNotDependOnTheRoundTrip) {
  Modelling ring(reduction_by(collective::Spec{"ring"}));
  plan::Plan plan = plan_of(8);
  plan.schedules = {{"ring"}};
  ring.want(plan);
  answer(ring);
  ring.set_round_trip(1);
  EXPECT_NE(*ring.of(plan), nullptr);
  EXPECT_EQ(ring.take_request(), nullptr);
}

TEST_F(ModellingTest, ModelsOfAnotherPlanAreNotPresent) {
  auto_.want(plan_of(8));
  answer(auto_);
  EXPECT_NE(auto_.present(plan_of(8)), nullptr);
  EXPECT_EQ(auto_.present(plan_of(7)), nullptr);
}

TEST_F(ModellingTest, SummersNeedNoModels) {
  Modelling summers(reduction_by(strategy::Summers()));
  EXPECT_NE(*summers.of(plan_of(8)), nullptr);
  EXPECT_EQ(summers.take_request(), nullptr);
}

}  // namespace
}  // namespace gleaner::coordinator
