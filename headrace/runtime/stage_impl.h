// What a stage holds. Private to stage*.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/autograd/edge.h>

#include "headrace/model/layer_guard.h"
#include "headrace/runtime/autograd_nodes.h"
#include "headrace/runtime/stage.h"

namespace headrace::runtime {

/// One use of a tied weight in this stage.
struct TiedUse {
  int parameter = 0;  // index in the store
  int layer = 0;      // index in the net
  at::Tensor tensor;
  c10::intrusive_ptr<TieSink> sink;
  // LibTorch keeps a leaf's accumulator only while some graph leads to it. Held here, it is not
  // ended by the graph of one thread while another thread begins to use it.
  NodePtr accumulator;
};

/// One layer with what the runtime knows about it.
struct StageLayer {
  model::NamedLayer layer;
  std::uint64_t id = 0;  // for its randomness
  std::unique_ptr<model::BatchNormStatistics> statistics;
  std::vector<std::pair<std::string, at::Tensor>> watched_buffers;  // may not change under remat
  std::vector<TiedUse*> tied;
};

/// What is kept of one microbatch between F and B.
struct LiveMicrobatch {
  Packet input;                        // only if a recompute follows
  std::vector<std::int64_t> versions;  // of input.values, when they were kept
  c10::intrusive_ptr<InputNode> node;
  std::vector<int> node_input;               // per input value: its place at `node`, or -1
  std::vector<torch::autograd::Edge> roots;  // per output value; in the last stage the loss alone
};

struct Stage::Impl {
  std::vector<StageLayer> layers;
  std::vector<model::NamedLayer> named_layers;
  std::vector<std::unique_ptr<TiedUse>> tied_uses;
  std::vector<std::pair<int, at::Tensor>> owned;  // (index in the store, tensor)
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<std::optional<LiveMicrobatch>> live;  // by microbatch

  LiveMicrobatch& live_at(int microbatch);
};

}  // namespace headrace::runtime
