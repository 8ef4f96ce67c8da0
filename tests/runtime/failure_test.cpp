// The first failure wins, names its place, and nothing hangs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/acts.h"
#include "tests/support/bits.h"
#include "tests/support/messages.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;
using std::chrono::milliseconds;
using test::expect_says;

struct Batch {
  at::Tensor input = at::ones({6, 4});
  at::Tensor target = at::zeros({6}, at::kLong);
};

nn::Sequential net_with(const test::ActsImpl::Act& act) {
  torch::manual_seed(1);
  return nn::Sequential(nn::Linear(4, 4), test::Acts(act), nn::Linear(4, 4));
}

PipelineOptions options(milliseconds limit = milliseconds(60'000)) {
  return PipelineOptions(3).microbatches(3).layers_per_stage({1, 1, 1}).timeout(limit);
}

template <typename Kind>
std::string failure(Pipeline& pipeline) {
  const Batch batch;
  return test::message_of<Kind>(
      [&] { pipeline.step(batch.input, batch.target, model::cross_entropy()); });
}

TEST(Failure, AThrowingLayerIsNamedAndThePipelineGoesOn) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int call) {
                      if (call == 2) throw std::runtime_error("out of cheese");
                      return x;
                    }),
                    options());
  expect_says(failure<base::Error>(pipeline),
              {"worker 1", "stage 1", "1F2", "microbatch 2", "layer '1'", "out of cheese"});
  const Batch batch;
  EXPECT_TRUE(pipeline.step(batch.input, batch.target, model::cross_entropy()).finite);
}

TEST(Failure, TheOriginalExceptionIsNested) {
  Pipeline pipeline(
      net_with([](const at::Tensor&, int) -> at::Tensor { throw std::out_of_range("index 9"); }),
      options());
  const Batch batch;
  try {
    pipeline.step(batch.input, batch.target, model::cross_entropy());
    FAIL();
  } catch (const base::Error& e) {
    EXPECT_THROW(std::rethrow_if_nested(e), std::out_of_range);
  }
}

TEST(Failure, AThrowInBackwardIsNamedToo) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int) {
                      at::Tensor y = x * 2;
                      y.register_hook([](const at::Tensor& g) -> at::Tensor {
                        throw std::runtime_error("hook failed");
                        return g;
                      });
                      return y;
                    }),
                    options());
  expect_says(failure<base::Error>(pipeline), {"worker 1", "1B0", "hook failed"});
}

TEST(Failure, ALayerThatReturnsNothingIsRefusedByName) {
  Pipeline pipeline(net_with([](const at::Tensor&, int) { return at::Tensor(); }), options());
  expect_says(failure<base::ConfigError>(pipeline), {"layer '1'", "stage 1"});
}

TEST(Failure, AShapeThatTheNextLayerCannotTakeIsAnErrorOfThatLayer) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int) { return x.slice(1, 0, 3); }), options());
  expect_says(failure<base::Error>(pipeline), {"layer '2'", "2F0"});
}

TEST(Failure, ADtypeThatTheNextLayerCannotTakeIsAnErrorOfThatLayer) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int) { return x.to(at::kDouble); }),
                    options());
  expect_says(failure<base::Error>(pipeline), {"layer '2'", "dtype"});
}

TEST(Failure, ShapesMayChangeBetweenMicrobatches) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int call) {
                      return x.unsqueeze(1).expand({x.size(0), call + 1, 4}).mean(1);
                    }),
                    options());
  const Batch batch;
  EXPECT_TRUE(pipeline.step(batch.input, batch.target, model::cross_entropy()).finite);
}

TEST(Failure, NaNInsideALayerSkipsTheUpdateWithoutAnError) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int) { return x * NAN; }), options());
  const Batch batch;
  const StepResult result = pipeline.step(batch.input, batch.target, model::cross_entropy());
  EXPECT_FALSE(result.finite);
  EXPECT_TRUE(result.skipped);
}

TEST(Failure, ALayerThatHangsEndsTheStepAtTheLimitAndNamesIt) {
  const auto door = std::make_shared<test::Door>();
  std::string logged;
  std::mutex log_mutex;
  {
    Pipeline pipeline(net_with([door](const at::Tensor& x, int call) {
                        if (call == 1) door->wait();
                        return x;
                      }),
                      options(milliseconds(300)).log([&](base::LogLevel, std::string_view text) {
                        const std::lock_guard lock(log_mutex);
                        logged += text;
                      }));
    const auto start = std::chrono::steady_clock::now();
    expect_says(failure<base::CommError>(pipeline), {"1F1", "layer '1'"});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    expect_says(failure<base::CommError>(pipeline), {"unusable"});
  }
  expect_says(logged, {"left behind", "layer '1'"});
  door->open();  // the worker left behind comes back to a state that is still its own
}

TEST(Failure, ManyFailuresInARowLeaveNoThreadAndNoMemoryBehind) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int call) {
                      if (call % 3 == 1) throw std::runtime_error("again");
                      return x;
                    }),
                    options());
  for (int i = 0; i < 50; ++i) {
    expect_says(failure<base::Error>(pipeline), {"again"});
  }
  std::int64_t live = 0;
  for (const StageMemory& stage : pipeline.memory()) live += stage.live_bytes;
  EXPECT_LT(live, 4096) << "only gradients of the net may be left";
}

TEST(Failure, ALossThatIsNoScalarIsRefused) {
  Pipeline pipeline(net_with([](const at::Tensor& x, int) { return x; }), options());
  const Batch batch;
  model::Loss loss = model::cross_entropy();
  loss.sum = [](const model::Tensors& outputs, const at::Tensor&) { return outputs[0]; };
  try {
    pipeline.step(batch.input, batch.target, loss);
    FAIL();
  } catch (const base::ConfigError& e) {
    expect_says(e.what(), {"scalar", "layer 'loss'"});
  }
}

}  // namespace
}  // namespace headrace::runtime
