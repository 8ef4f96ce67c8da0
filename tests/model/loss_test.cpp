#include "headrace/model/loss.h"

#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

#include "tests/support/messages.h"

namespace headrace::model {
namespace {

using test::expect_says;
using test::message_of;

TEST(CrossEntropy, SumsOverTokensAndSkipsIgnoredOnes) {
  const at::Tensor logits = at::randn({3, 4, 5}, at::kDouble);
  at::Tensor target = at::randint(0, 5, {3, 4}, at::kLong);
  target.index_put_({at::tensor({0, 2}), at::tensor({1, 3})}, at::tensor(7L));
  const Loss loss = cross_entropy(7);

  double expected = 0;
  for (int n = 0; n < 3; ++n) {
    for (int t = 0; t < 4; ++t) {
      const auto label = target[n][t].item<std::int64_t>();
      expected -= label == 7 ? 0 : logits[n][t].log_softmax(0)[label].item<double>();
    }
  }
  EXPECT_NEAR(loss.sum({logits}, target).item<double>(), expected, 1e-12);
  EXPECT_EQ(loss.weight(target), 10.0);
}

TEST(CrossEntropy, AddsUpOverSlicesOfTheBatch) {
  const at::Tensor logits = at::randn({5, 3}, at::kDouble);
  const at::Tensor target = at::tensor({0L, -100L, 2L, 1L, -100L});
  const Loss loss = cross_entropy();
  const double parts = loss.sum({logits.slice(0, 0, 2)}, target.slice(0, 0, 2)).item<double>() +
                       loss.sum({logits.slice(0, 2)}, target.slice(0, 2)).item<double>();
  EXPECT_NEAR(loss.sum({logits}, target).item<double>(), parts, 1e-12);
  EXPECT_EQ(loss.weight(target.slice(0, 0, 2)) + loss.weight(target.slice(0, 2)),
            loss.weight(target));
}

TEST(CrossEntropy, GivesZeroAndZeroGradientsWhereNothingCounts) {
  at::Tensor logits = at::randn({2, 3}).requires_grad_();
  const at::Tensor target = at::full({2}, -100L, at::kLong);
  const at::Tensor sum = cross_entropy().sum({logits}, target);
  sum.backward();
  EXPECT_EQ(sum.item<float>(), 0.0F);
  EXPECT_TRUE(at::equal(logits.grad(), at::zeros({2, 3})));
  EXPECT_EQ(cross_entropy().weight(target), 0.0);
}

TEST(CrossEntropy, SumsHalfPrecisionInSinglePrecision) {
  const at::Tensor logits = at::randn({2, 3}).to(at::kBFloat16);
  EXPECT_EQ(cross_entropy().sum({logits}, at::tensor({0L, 1L})).scalar_type(), at::kFloat);
}

TEST(CrossEntropy, RefusesWhatDoesNotFitAndTellsTheShapes) {
  const Loss loss = cross_entropy();
  const at::Tensor logits = at::randn({2, 4, 3});
  expect_says(message_of([&] {
                loss.sum({logits}, at::zeros({2, 3}, at::kLong));
              }),
              {"[2, 4, 3]", "[2, 3]", "last dimension"});
  expect_says(message_of([&] { loss.sum({logits}, at::zeros({2, 4})); }), {"Long", "Float [2, 4]"});
  expect_says(message_of([&] { loss.weight(at::zeros({2, 4}, at::kInt)); }), {"Int [2, 4]"});
  expect_says(message_of([&] {
                loss.sum({logits, logits}, at::zeros({2, 4}, at::kLong));
              }),
              {"found 2"});
  expect_says(message_of([&] { loss.sum({}, at::zeros({2, 4}, at::kLong)); }), {"found 0"});
  expect_says(message_of([&] { loss.sum({at::Tensor()}, at::zeros({2}, at::kLong)); }),
              {"undefined"});
  expect_says(message_of([&] {
                loss.sum({at::zeros({2, 3}, at::kLong)}, at::zeros({2}, at::kLong));
              }),
              {"floating", "Long [2, 3]"});
}

TEST(Mse, AveragesWithinARowAndSumsOverRows) {
  const at::Tensor output = at::tensor({1.0, 2.0, 3.0, 5.0}).reshape({2, 2});
  const at::Tensor target = at::tensor({0.0, 0.0, 3.0, 1.0}).reshape({2, 2});
  EXPECT_DOUBLE_EQ(mse().sum({output}, target).item<double>(), (1.0 + 4.0) / 2 + 16.0 / 2);
  EXPECT_EQ(mse().weight(target), 2.0);
}

TEST(Mse, RefusesShapesThatWouldBroadcast) {
  expect_says(message_of([] {
                mse().sum({at::zeros({4, 1})}, at::zeros({4}));
              }),
              {"[4, 1]", "[4]", "same shape"});
  expect_says(message_of([] { mse().sum({at::zeros({4})}, at::zeros({4}, at::kLong)); }),
              {"floating", "Long [4]"});
  expect_says(message_of([] { mse().weight(at::zeros({})); }), {"rows"});
  expect_says(message_of([] {
                mse().sum({at::zeros({4, 0})}, at::zeros({4, 0}));
              }),
              {"at least one element"});
}

}  // namespace
}  // namespace headrace::model
