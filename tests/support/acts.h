// Layers that do whatever a test wants of a user's layer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace headrace::test {

/// Hands its input and the number of the call, from 0, to a function.
class ActsImpl : public torch::nn::Module {
 public:
  using Act = std::function<at::Tensor(const at::Tensor&, int)>;
  explicit ActsImpl(Act act) : act_(std::move(act)) {}
  at::Tensor forward(const at::Tensor& x) { return act_(x, call_++); }

 private:
  Act act_;
  int call_ = 0;
};
TORCH_MODULE(Acts);

/// Logits by a weight that another layer owns.
class TiedHeadImpl : public torch::nn::Module {
 public:
  explicit TiedHeadImpl(const at::Tensor& weight) : weight_(register_parameter("weight", weight)) {}
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight_); }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(TiedHead);

/// A door that a layer waits at; the test opens it before it ends.
class Door {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return open_; });
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace headrace::test
