#include "headrace/runtime/measure.h"

#include <future>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include "headrace/base/error.h"
#include "headrace/memory/allocator.h"

#include "tests/support/bits.h"
#include "tests/support/nets.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

TEST(Measure, CountsBytesOfStockLayers) {
  memory::install_allocator();
  const nn::Sequential net(nn::Linear(256, 512), nn::Sigmoid(), nn::Linear(512, 128));
  const auto profiles = measure_layers(model::layers_of(net), {at::randn({64, 256})});
  ASSERT_EQ(profiles.size(), 3u);
  EXPECT_EQ(profiles[0].parameter_bytes, (256 * 512 + 512) * 4);
  EXPECT_EQ(profiles[0].output_bytes, 64 * 512 * 4);
  EXPECT_EQ(profiles[0].activation_bytes, 0) << "a Linear keeps only what it was given";
  EXPECT_EQ(profiles[1].activation_bytes, 64 * 512 * 4) << "a sigmoid keeps its result";
  EXPECT_EQ(profiles[2].output_bytes, 64 * 128 * 4);
}

TEST(Measure, ALargerLayerTakesLonger) {
  const nn::Sequential net(nn::Linear(512, 512), nn::Linear(512, 8), nn::Linear(8, 8));
  const auto profiles = measure_layers(model::layers_of(net), {at::randn({256, 512})});
  EXPECT_GT(profiles[0].seconds(), profiles[2].seconds());
  for (const auto& layer : profiles) EXPECT_GT(layer.forward_seconds, 0);
}

TEST(Measure, TheFirstLayerHasNoInputGradient) {
  const nn::Sequential net(nn::Linear(64, 64), nn::Linear(64, 64));
  const auto profiles = measure_layers(model::layers_of(net), {at::randn({32, 64})});
  EXPECT_EQ(profiles[0].input_gradient_seconds, 0);
  EXPECT_GT(profiles[0].weight_gradient_seconds, 0);
  EXPECT_GT(profiles[1].input_gradient_seconds, 0);
}

TEST(Measure, LeavesBuffersGradientsInputAndGeneratorAlone) {
  for (const char* name : {"mlp", "text", "images"}) {
    test::Task task = test::task(name, 6);
    test::Named buffers;
    for (const auto& item : task.net->named_buffers())
      buffers.emplace_back(item.key(), item.value());
    const test::Named before = test::snapshot(buffers);
    const at::Tensor input = task.input.clone();
    const auto generator = at::globalContext().defaultGenerator(at::kCPU);
    const at::Tensor state = generator.get_state();
    measure_layers(model::layers_of(task.net), {task.input});
    EXPECT_EQ(test::differing(buffers, before), "") << name;
    EXPECT_TRUE(test::same_bits(task.input, input)) << name;
    EXPECT_TRUE(test::same_bits(generator.get_state(), state)) << name;
    for (const at::Tensor& parameter : task.net->parameters()) {
      EXPECT_FALSE(parameter.grad().defined()) << name;
    }
  }
}

/// Comes back only when the test says so.
class WaitsImpl : public nn::Module {
 public:
  explicit WaitsImpl(std::shared_future<void> door) : door_(std::move(door)) {}
  at::Tensor forward(const at::Tensor& x) {
    door_.wait();
    return x;
  }

 private:
  std::shared_future<void> door_;
};
TORCH_MODULE(Waits);

TEST(Measure, ALayerThatHangsIsLeftBehindAtTheLimitAndNamed) {
  std::promise<void> door;
  const nn::Sequential net(nn::Linear(4, 4), Waits(door.get_future().share()), nn::Linear(4, 4));
  const int threads = at::get_num_threads();
  try {
    measure_layers_within(std::chrono::milliseconds(200), 1, model::layers_of(net),
                          {at::zeros({2, 4})}, {}, {});
    ADD_FAILURE() << "the limit has no effect";
  } catch (const base::CommError& e) {
    EXPECT_NE(std::string(e.what()).find("layer '1'"), std::string::npos) << e.what();
  }
  EXPECT_EQ(at::get_num_threads(), threads);
  door.set_value();
}

TEST(Measure, ALayerThatCannotRunIsNamed) {
  const nn::Sequential net(nn::Linear(4, 5), nn::Linear(4, 4));
  try {
    measure_layers(model::layers_of(net), {at::zeros({2, 4})});
    FAIL();
  } catch (const base::ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("layer '1'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace headrace::runtime
