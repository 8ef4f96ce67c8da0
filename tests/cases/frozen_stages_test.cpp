// Faults of other systems with stages that have nothing to train: the others train, are clipped and
// are saved as they would be without them.
#include <memory>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "headrace/record/manifest.h"
#include "headrace/runtime/pipeline.h"
#include "headrace/train/checkpoint.h"

#include "tests/base/temporary_folder.h"
#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

/// Five layers of three stages, of which the middle one holds only the third.
nn::Sequential with_middle(bool relu) {
  torch::manual_seed(3);
  nn::Sequential net(nn::Linear(6, 8), nn::Tanh());
  if (relu) {
    net->push_back(nn::ReLU());
  } else {
    net->push_back(nn::Linear(8, 8));
  }
  net->push_back(nn::Tanh());
  net->push_back(nn::Linear(8, 4));
  return net;
}

void freeze(const nn::Sequential& net, const std::vector<std::string>& layers) {
  for (const auto& item : net->named_parameters()) {
    for (const std::string& layer : layers) {
      if (item.key().starts_with(layer + ".")) item.value().set_requires_grad(false);
    }
  }
}

struct Frozen {
  std::string what;
  bool relu;
  std::vector<std::string> layers;
};

const std::vector<Frozen> kFrozen{{"the middle stage", false, {"2"}},
                                  {"a stage that is only a ReLU", true, {}},
                                  {"the first stage", false, {"0"}},
                                  {"the last stage", false, {"4"}},
                                  {"all but the first stage", false, {"2", "4"}},
                                  {"everything", false, {"0", "2", "4"}}};

struct Rows {
  at::Tensor input = at::randn({10, 6});
  at::Tensor target = at::randint(4, {10}, at::kLong);
};

PipelineOptions three_stages(test::Layout layout) {
  layout.workers = 3;
  return test::options(layout, 4).layers_per_stage({2, 1, 2});
}

// deepspeedai/DeepSpeed#5071: an optimizer refuses the empty list of a stage with nothing to train.
TEST(FrozenStages, TrainTheOthers) {
  for (const Frozen& frozen : kFrozen) {
    nn::Sequential plain = with_middle(frozen.relu);
    freeze(plain, frozen.layers);
    const Rows rows;
    std::vector<at::Tensor> trained;
    for (const at::Tensor& parameter : plain->parameters()) {
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    std::vector<test::Named> gradients;
    std::unique_ptr<torch::optim::AdamW> adamw;
    if (!trained.empty()) adamw = std::make_unique<torch::optim::AdamW>(trained, 1e-3);
    for (int i = 0; i < 3; ++i) {
      test::oracle_backward(plain, rows.input, rows.target, {3, 3, 2, 2});
      gradients.push_back(test::gradients(test::parameters_of(plain)));
      if (adamw) adamw->step();
    }
    for (const test::Layout& layout : test::layouts({3})) {
      SCOPED_TRACE(testing::Message() << frozen.what << ", " << layout);
      const nn::Sequential net = with_middle(frozen.relu);
      freeze(net, frozen.layers);
      Pipeline pipeline(net, three_stages(layout).optimizer(optim::optimizer_factory({})));
      for (int i = 0; i < 3; ++i) {
        const StepResult result = pipeline.step(rows.input, rows.target, model::cross_entropy());
        EXPECT_TRUE(result.finite);
        EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), gradients[i]), "");
      }
      EXPECT_EQ(test::differing(pipeline.named_parameters(), test::parameters_of(plain)), "");
    }
  }
}

TEST(FrozenStages, AreClippedWithTheOthers) {
  for (const Frozen& frozen : kFrozen) {
    if (frozen.what == "everything") continue;  // no gradient to clip
    SCOPED_TRACE(frozen.what);
    nn::Sequential plain = with_middle(frozen.relu);
    freeze(plain, frozen.layers);
    const Rows rows;
    test::oracle_backward(plain, rows.input, rows.target, {3, 3, 2, 2});
    const double norm = nn::utils::clip_grad_norm_(plain->parameters(), 0.05);
    torch::optim::SGD(plain->parameters(), torch::optim::SGDOptions(0.5)).step();
    const nn::Sequential net = with_middle(frozen.relu);
    freeze(net, frozen.layers);
    Pipeline pipeline(net, three_stages({}).max_norm(0.05).optimizer(optim::optimizer_factory(
                               {.name = "SGD", .lr = 0.5, .weight_decay = 0})));
    const StepResult result = pipeline.step(rows.input, rows.target, model::cross_entropy());
    EXPECT_NEAR(result.grad_norm, norm, 1e-6 * norm);
    EXPECT_GT(norm, 0.05) << "nothing was clipped";
    EXPECT_EQ(test::further_apart(pipeline.named_parameters(), test::parameters_of(plain)), "");
  }
}

TEST(FrozenStages, AreSavedWithTheOthers) {
  for (const Frozen& frozen : kFrozen) {
    SCOPED_TRACE(frozen.what);
    const nn::Sequential net = with_middle(frozen.relu);
    freeze(net, frozen.layers);
    const Pipeline pipeline(net, three_stages({}));
    const base::TemporaryFolder folder;
    train::save_checkpoint(folder / "saved", pipeline.named_parameters(), {});
    const record::Manifest manifest = record::read_manifest(folder / "saved");
    record::verify(folder / "saved", manifest);
    EXPECT_EQ(manifest.tensors.size(), frozen.relu ? 4U : 6U);
  }
}

}  // namespace
}  // namespace headrace::runtime
