#include "headrace/schedule/dependencies.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

namespace headrace::schedule {

namespace {

// The stage beside another. Lists that break every rule are drawn too: no number overflows here.
int beside(int stage, int step) {
  const auto beside = std::int64_t{stage} + step;
  return beside < 0 || beside > std::numeric_limits<int>::max() ? Action::kNone
                                                                : static_cast<int>(beside);
}

}  // namespace

Message message_of(const Action& transfer) {
  const bool forward = transfer.kind == Kind::kSendForward || transfer.kind == Kind::kRecvForward;
  const bool send = transfer.kind == Kind::kSendForward || transfer.kind == Kind::kSendBackward;
  const int peer = peer_of(transfer);
  return {forward, send ? transfer.stage : peer, send ? peer : transfer.stage, transfer.microbatch,
          transfer.value};
}

int peer_of(const Action& transfer) {
  if (transfer.peer_stage != Action::kNone) {
    return transfer.peer_stage;
  }
  const bool to_next = transfer.kind == Kind::kSendForward || transfer.kind == Kind::kRecvBackward;
  return beside(transfer.stage, to_next ? 1 : -1);
}

std::size_t Places::Hash::operator()(const Key& key) const {
  std::size_t hash = static_cast<std::size_t>(static_cast<unsigned>(key.stage));
  hash = hash * 0x9E3779B97F4A7C15ULL + static_cast<unsigned>(key.microbatch);
  hash = hash * 0x9E3779B97F4A7C15ULL + static_cast<unsigned>(key.kind);
  return hash ^ (hash >> 32U);
}

Places::Places(const Schedule& schedule) {
  for_each_action(schedule, [&](const Action& action, Place place) {
    if (!is_compute(action.kind)) {
      return;
    }
    has_backward_ =
        has_backward_ || (action.kind != Kind::kForward && action.kind != Kind::kRecompute);
    const Key key{action.stage, action.kind, action.microbatch};
    if (!places_.try_emplace(key, place).second && !repeated_) {
      repeated_ = place;
    }
  });
}

Place Places::find(int stage, Kind kind, int microbatch) const {
  const auto found = places_.find({stage, kind, microbatch});
  return found == places_.end() ? Place{} : found->second;
}

Place Places::find_gradient(int stage, int microbatch) const {
  const Place full = find(stage, Kind::kBackward, microbatch);
  return full ? full : find(stage, Kind::kInputGradient, microbatch);
}

Place Places::find_weight_gradient(int stage, int microbatch) const {
  const Place full = find(stage, Kind::kBackward, microbatch);
  return full ? full : find(stage, Kind::kWeightGradient, microbatch);
}

Place Graph::place(int node) const {
  if (node >= num_cells()) {
    return {};
  }
  const auto after = std::upper_bound(first.begin(), first.end(), node);
  const auto worker = static_cast<int>(after - first.begin()) - 1;
  return {worker, node - first[static_cast<std::size_t>(worker)]};
}

int Graph::before(int node) const {
  return place(node).index > 0 ? node - 1 : -1;
}

std::vector<std::vector<int>> Graph::waiting() const {
  std::vector<std::vector<int>> waiting(needs.size());
  for (std::size_t worker = 0; worker + 1 < first.size(); ++worker) {
    for (int node = first[worker] + 1; node < first[worker + 1]; ++node) {
      waiting[static_cast<std::size_t>(node - 1)].push_back(node);
    }
  }
  for (int node = 0; node < num_nodes(); ++node) {
    for (const int needed : needs[static_cast<std::size_t>(node)]) {
      waiting[static_cast<std::size_t>(needed)].push_back(node);
    }
  }
  return waiting;
}

Graph dependencies(const Schedule& schedule) {
  Graph graph;
  graph.first.push_back(0);
  for (const auto& list : schedule.workers) {
    graph.first.push_back(graph.first.back() + static_cast<int>(list.size()));
  }
  const int ties_summed = graph.num_cells();
  const int norm_known = ties_summed + 1;
  graph.needs.resize(static_cast<std::size_t>(graph.num_cells()) + 2);
  const auto need = [&](int node, int needed) {
    graph.needs[static_cast<std::size_t>(node)].push_back(needed);
  };
  const auto need_place = [&](int node, Place needed) {
    if (needed) {
      need(node, graph.node(needed));
    }
  };

  const Places places(schedule);
  std::map<Message, Place> sends;
  std::map<int, bool> has_tie;  // by stage
  for_each_action(schedule, [&](const Action& action, Place place) {
    if (action.kind == Kind::kSendForward || action.kind == Kind::kSendBackward) {
      sends.try_emplace(message_of(action), place);
    } else if (action.kind == Kind::kReduceTie) {
      has_tie[action.stage] = true;
    }
  });
  for_each_action(schedule, [&](const Action& action, Place place) {
    const int node = graph.node(place);
    switch (action.kind) {
      case Kind::kForward:
        need_place(node, places.find(beside(action.stage, -1), Kind::kForward, action.microbatch));
        break;
      case Kind::kBackward:
      case Kind::kInputGradient:
        need_place(node, places.find_gradient(beside(action.stage, 1), action.microbatch));
        break;
      case Kind::kRecvForward:
      case Kind::kRecvBackward:
        if (const auto send = sends.find(message_of(action)); send != sends.end()) {
          need_place(node, send->second);
        }
        break;
      case Kind::kReduceTie:
        need(ties_summed, node);
        break;
      case Kind::kNorm:
        if (has_tie.contains(action.stage)) {
          need(node, ties_summed);
        }
        need(norm_known, node);
        break;
      case Kind::kUpdate:
        need(node, norm_known);
        break;
      default:
        break;
    }
  });
  return graph;
}

std::vector<int> runnable_order(const Graph& graph) {
  const auto waiting = graph.waiting();
  std::vector<std::size_t> num_missing(graph.needs.size());
  for (const auto& nodes : waiting) {
    for (const int node : nodes) {
      ++num_missing[static_cast<std::size_t>(node)];
    }
  }
  std::vector<int> order;
  for (int node = 0; node < graph.num_nodes(); ++node) {
    if (num_missing[static_cast<std::size_t>(node)] == 0) {
      order.push_back(node);
    }
  }
  for (std::size_t done = 0; done < order.size(); ++done) {
    for (const int node : waiting[static_cast<std::size_t>(order[done])]) {
      if (--num_missing[static_cast<std::size_t>(node)] == 0) {
        order.push_back(node);
      }
    }
  }
  return order;
}

}  // namespace headrace::schedule
