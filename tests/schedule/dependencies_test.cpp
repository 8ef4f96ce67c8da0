#include "headrace/schedule/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lists.h"

namespace headrace::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Dependencies, LeadFromStageToStageAndBack) {
  const Graph graph = dependencies(from_csv("0F0,0B0\n1F0,1I0,1W0\n"));
  EXPECT_EQ(graph.num_cells(), 5);
  EXPECT_THAT(graph.needs[0], IsEmpty());       // 0F0
  EXPECT_THAT(graph.needs[1], ElementsAre(3));  // 0B0 needs 1I0
  EXPECT_THAT(graph.needs[2], ElementsAre(0));  // 1F0 needs 0F0
  EXPECT_THAT(graph.needs[3], IsEmpty());       // 1I0: its F stands before it in the list
  EXPECT_THAT(graph.needs[4], IsEmpty());
  EXPECT_EQ(graph.before(0), -1);
  EXPECT_EQ(graph.before(1), 0);
  EXPECT_EQ(graph.before(2), -1);
}

TEST(Dependencies, TieTheEndOfAStepTogether) {
  const Graph graph = dependencies(from_csv("0F0,0REDUCE_TIE,0NORM,0U\n1F0,1NORM,1U\n"));
  const int ties_summed = graph.num_cells();
  const int norm_known = ties_summed + 1;
  EXPECT_THAT(graph.needs[2], ElementsAre(ties_summed));  // 0NORM
  EXPECT_THAT(graph.needs[5], IsEmpty());                 // 1NORM: no tie
  EXPECT_THAT(graph.needs[static_cast<std::size_t>(norm_known)], ElementsAre(2, 5));
  EXPECT_THAT(graph.needs[3], ElementsAre(norm_known));  // 0U
  EXPECT_FALSE(graph.place(norm_known));
}

TEST(Dependencies, LeadFromASendToItsReceive) {
  const Graph graph =
      dependencies(from_csv("0F0,0SEND_F0,0SEND_F0>2[skip]\n1RECV_F0,1F0\n2RECV_F0<0[skip],2F0\n"));
  EXPECT_THAT(graph.needs[3], ElementsAre(1));
  EXPECT_THAT(graph.needs[5], ElementsAre(2));
}

TEST(RunnableOrder, HoldsEveryNodeOnceUnlessSomeAreStuck) {
  const Graph fine = dependencies(from_csv("0F0,0B0,0NORM,0U\n1F0,1B0,1NORM,1U\n"));
  EXPECT_EQ(static_cast<int>(runnable_order(fine).size()), fine.num_nodes());
  const Graph stuck = dependencies(from_csv("0F0,0B0,0F1\n1F1,1F0,1B0\n"));
  EXPECT_EQ(runnable_order(stuck).size(), 3U);  // 0F0 and the two barriers
}

TEST(Places, KeepTheFirstAndTellARepetition) {
  const Places places(from_csv("0F0,0I0,0W0,0F0\n"));
  EXPECT_EQ(places.find(0, Kind::kForward, 0).index, 0);
  EXPECT_EQ(places.find_gradient(0, 0).index, 1);
  EXPECT_EQ(places.find_weight_gradient(0, 0).index, 2);
  EXPECT_EQ(places.repeated().index, 3);
  EXPECT_TRUE(places.has_backward());
  EXPECT_FALSE(places.find(0, Kind::kBackward, 0));
  EXPECT_FALSE(Places(from_csv("0F0,0U\n")).has_backward());
}

}  // namespace
}  // namespace headrace::schedule
