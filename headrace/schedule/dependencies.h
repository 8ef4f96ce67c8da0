// What each cell of a schedule needs before it can start: read by validate, the drawing and, later,
// the simulator. A list that breaks rules has a graph too: needs that no cell fulfils are left out.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

/// Where one action stands: worker, and index in its list. `worker` -1: nowhere.
struct Place {
  int worker = -1;
  int index = -1;
  explicit operator bool() const { return worker >= 0; }
};

/// Finds the cell of an action by stage, kind and microbatch (the first one, if there are several).
/// Cost: O(1) each.
class Places {
 public:
  explicit Places(const Schedule& schedule);

  Place find(int stage, Kind kind, int microbatch) const;
  /// Of the action that makes the gradient for the stage before: B or I.
  Place find_gradient(int stage, int microbatch) const;
  /// Of the action that adds to the stage's weight gradient: B or W.
  Place find_weight_gradient(int stage, int microbatch) const;
  /// The first cell whose action stood somewhere before already.
  Place repeated() const { return repeated_; }
  /// Whether there is any B, I or W; without, the list only forwards.
  bool has_backward() const { return has_backward_; }

 private:
  struct Key {
    int stage;
    Kind kind;
    int microbatch;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, Place, Hash> places_;
  Place repeated_;
  bool has_backward_ = false;
};

/// Nodes 0..num_cells-1 are the cells, worker by worker; what follows are barriers, which take no
/// time: "all uses of tied weights are summed" and "the global norm is known".
struct Graph {
  std::vector<int> first;               // first[w] = node of worker w's first cell; num_workers + 1
  std::vector<std::vector<int>> needs;  // per node, besides the cell before it in its list

  int num_cells() const { return first.back(); }
  int num_nodes() const { return static_cast<int>(needs.size()); }
  int node(Place place) const {
    return first[static_cast<std::size_t>(place.worker)] + place.index;
  }
  Place place(int node) const;  // of a barrier: nowhere
  /// The cell before it in its list, or -1.
  int before(int node) const;
  /// Every node that directly waits for each node, the next in its list among them.
  std::vector<std::vector<int>> waiting() const;
};

/// F(s) needs F(s - 1), B or I of s needs that of s + 1, a receive needs its send, NORM needs all
/// REDUCE_TIE if its stage has one, U needs all NORM. Cost O(actions).
Graph dependencies(const Schedule& schedule);

/// The nodes in an order in which they can run. Shorter than num_nodes(): the rest is deadlocked.
std::vector<int> runnable_order(const Graph& graph);

/// The stage at the other end of a transfer: `peer_stage`, else the neighbour that its kind means.
int peer_of(const Action& transfer);

/// Which message a transfer is an end of: forward, sending stage, receiving stage, microbatch,
/// value. A send and its receive agree in it.
using Message = std::tuple<bool, int, int, int, std::string>;
Message message_of(const Action& transfer);

/// Calls `visit(action, place)` for every action, parts of overlapped cells singly.
template <typename Visit>
void for_each_action(const Schedule& schedule, const Visit& visit) {
  for (int worker = 0; worker < schedule.num_workers(); ++worker) {
    const auto& list = schedule.workers[static_cast<std::size_t>(worker)];
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      for_each_part(list[static_cast<std::size_t>(index)], [&](const Action& action) {
        visit(action, Place{worker, index});
      });
    }
  }
}

}  // namespace headrace::schedule
