// How many packets can be in flight into a stage, at most, whatever the speed of the workers.
//
// Let c be the j-th action of a worker that consumes packets. Just before c begins, j - 1 packets
// have been consumed, and every send that does not (directly or through others) wait for c may have
// happened. The sends that do wait for c are, in each list, all from some index on. So the worst
// case before c is (sends before those indices) - (j - 1), and the worst case is the largest of
// these. The indices come from one backward pass over the graph per producing worker.
#include <algorithm>
#include <map>
#include <utility>

#include "headrace/schedule/rules.h"

namespace headrace::schedule {

namespace {

enum class Direction { kForward, kBackward };

class Packets {
 public:
  Packets(const Schedule& schedule, const Graph& graph, const std::vector<int>& order)
      : schedule_(schedule), graph_(graph), order_(order), waiting_(graph.waiting()) {
    for_each_action(schedule, [&](const Action& action, Place place) {
      if (action.kind == Kind::kForward) {
        cells_[{Direction::kForward, action.stage, place.worker}].push_back(
            {place.index, action.microbatch});
      } else if (action.kind == Kind::kBackward || action.kind == Kind::kInputGradient) {
        cells_[{Direction::kBackward, action.stage, place.worker}].push_back(
            {place.index, action.microbatch});
      }
    });
  }

  void count(Proof& proof) {
    for (int producer = 0; producer < schedule_.num_workers(); ++producer) {
      find_first_waiting(producer);
      for (const auto& [key, sends] : cells_) {
        if (key.worker == producer) {
          add_sends(key, sends);
        }
      }
    }
    for (const auto& [key, in_flight] : in_flight_) {
      auto& most =
          key.direction == Direction::kForward ? proof.forward_packets : proof.backward_packets;
      most[static_cast<std::size_t>(key.stage)] +=
          std::max(0, *std::max_element(in_flight.begin(), in_flight.end()));
    }
  }

 private:
  struct Key {
    Direction direction;
    int stage;
    int worker;
    auto operator<=>(const Key&) const = default;
  };
  struct Cell {
    int index;  // in its worker's list
    int microbatch;
  };

  // Per node: the index of the first cell in the producer's list that waits for it.
  void find_first_waiting(int producer) {
    const int begin = graph_.first[static_cast<std::size_t>(producer)];
    const int end = graph_.first[static_cast<std::size_t>(producer) + 1];
    first_waiting_.assign(graph_.needs.size(), end - begin);
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      int& first = first_waiting_[static_cast<std::size_t>(*node)];
      for (const int waiter : waiting_[static_cast<std::size_t>(*node)]) {
        const bool own = waiter >= begin && waiter < end;
        first = std::min(first,
                         own ? waiter - begin : first_waiting_[static_cast<std::size_t>(waiter)]);
      }
    }
  }

  // Adds one producing worker's sends to what may be in flight before each consuming action.
  void add_sends(const Key& key, const std::vector<Cell>& sends) {
    const int stage = key.stage + (key.direction == Direction::kForward ? 1 : -1);
    if (stage < 0 || stage >= schedule_.num_stages) {
      return;
    }
    const auto& consumers = schedule_.placement[static_cast<std::size_t>(stage)];
    for (std::size_t replica = 0; replica < consumers.size(); ++replica) {
      const Key into{key.direction, stage, consumers[replica]};
      const auto found = cells_.find(into);
      if (found == cells_.end()) {
        continue;
      }
      std::vector<int> sent;  // list indices, ascending
      for (const Cell& cell : sends) {
        if (static_cast<std::size_t>(cell.microbatch) % consumers.size() == replica) {
          sent.push_back(cell.index);
        }
      }
      const auto& consumed = found->second;
      auto& in_flight = in_flight_[into];
      if (in_flight.empty()) {
        for (std::size_t j = 0; j < consumed.size(); ++j) {
          in_flight.push_back(-static_cast<int>(j));
        }
      }
      for (std::size_t j = 0; j < consumed.size(); ++j) {
        const int node = graph_.node({into.worker, consumed[j].index});
        const auto ahead = std::lower_bound(sent.begin(), sent.end(),
                                            first_waiting_[static_cast<std::size_t>(node)]);
        in_flight[j] += static_cast<int>(ahead - sent.begin());
      }
    }
  }

  const Schedule& schedule_;
  const Graph& graph_;
  const std::vector<int>& order_;
  const std::vector<std::vector<int>> waiting_;
  std::map<Key, std::vector<Cell>> cells_;
  std::map<Key, std::vector<int>> in_flight_;  // before each consuming action
  std::vector<int> first_waiting_;
};

}  // namespace

void count_packets(const Schedule& schedule, const Graph& graph, const std::vector<int>& order,
                   Proof& proof) {
  Packets(schedule, graph, order).count(proof);
}

}  // namespace headrace::schedule
