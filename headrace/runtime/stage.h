// A stage: consecutive layers on one device, and what it keeps of each microbatch between its
// forward and its backward.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/memory/allocator.h"
#include "headrace/model/sequence.h"
#include "headrace/optim/optimizer.h"
#include "headrace/runtime/channel.h"
#include "headrace/runtime/parameter_store.h"
#include "headrace/runtime/step.h"

namespace headrace::runtime {

/// What a forward leaves behind.
enum class Keep {
  kGraph,    // everything that the backward needs
  kInputs,   // only the stage's inputs: a recompute follows
  kNothing,  // evaluation
};

/// Thread rule: only its worker calls it during a step; others only while no step runs.
class Stage {
 public:
  struct Place {
    int index = 0;
    int first_layer = 0;
    bool last = false;
    at::Device device = at::kCPU;
  };

  /// Moves the layers to the device if they are not there.
  /// @param optimizer may be empty; else it is made for the parameters that this stage owns (those
  ///        whose first use is here) if there is any.
  Stage(Place place, std::vector<model::NamedLayer> layers, const ParameterStore& parameters,
        const optim::OptimizerFactory& optimizer);
  ~Stage();

  /// Prepares for a step; forgets what an earlier, failed one left.
  void open(const Step& step);
  /// Frees what microbatches hold, after a failure.
  void clear();
  /// Forgets gradients: those of the parameters it owns and of its tied uses.
  void zero_grad();

  /// The layers on one microbatch, and the loss in the last stage.
  /// @returns what the next stage gets (empty for the last stage).
  Packet forward(Step& step, int microbatch, Packet input, Keep keep);
  /// Runs the layers again on the kept inputs, now with the graph.
  void recompute(Step& step, int microbatch);
  /// @param gradients of what forward returned. @returns gradients of what it was given.
  Packet backward(Step& step, int microbatch, Packet gradients);

  /// Sums of this stage's uses of tied weights: (parameter, layer, sum); read by the owner.
  const at::Tensor& tied_gradient(int parameter, int layer) const;
  /// Writes the squared norm of each parameter it owns into step.squared_norms (and, in the last
  /// stage, the losses' values).
  void measure_norms(Step& step);
  /// Scales the gradients and steps the optimizer.
  void update(const Step& step, double scale);
  /// Writes the BatchNorm statistics of the step into the modules.
  void commit_statistics();

  const std::vector<int>& owned_parameters() const { return owned_; }
  const std::vector<model::NamedLayer>& layers() const;
  const Place& place() const { return place_; }
  const std::shared_ptr<memory::Account>& account() const { return account_; }
  /// The layer that runs now; for error messages, readable from any thread.
  const std::string* current_layer() const {
    return current_layer_.load(std::memory_order_relaxed);
  }

 private:
  struct Impl;
  Place place_;
  std::vector<int> owned_;
  std::shared_ptr<memory::Account> account_;
  std::atomic<const std::string*> current_layer_{nullptr};
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::runtime
