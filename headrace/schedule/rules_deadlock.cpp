// Follows who waits for whom until a worker comes up again.
#include <algorithm>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/schedule/rules.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

class Deadlock {
 public:
  Deadlock(const Schedule& schedule, const Graph& graph, const std::vector<int>& order)
      : schedule_(schedule), graph_(graph), done_(graph.needs.size(), false) {
    for (const int node : order) {
      done_[static_cast<std::size_t>(node)] = true;
    }
  }

  [[noreturn]] void tell() const {
    std::vector<int> path{stuck_cell(first_stuck_worker())};
    std::vector<std::string> sentences;
    for (;;) {
      const int needed = unfinished_need(path.back());
      const Place there = graph_.place(needed);
      const int next = stuck_cell(there.worker);
      std::string sentence = place_text(path.back()) + " needs " + name(needed);
      if (needed != next) {
        sentence += ", which stands behind " + name(next) + " in the list of worker " +
                    std::to_string(there.worker);
      }
      sentences.push_back(std::move(sentence));
      const auto loop = std::find(path.begin(), path.end(), next);
      if (loop != path.end()) {
        tell_loop(*loop, sentences, static_cast<std::size_t>(loop - path.begin()));
      }
      path.push_back(next);
    }
  }

 private:
  bool is_done(int node) const { return done_[static_cast<std::size_t>(node)]; }

  // The first cell of a worker's list that never starts, or -1.
  int stuck_cell(int worker) const {
    for (int node = graph_.first[static_cast<std::size_t>(worker)];
         node < graph_.first[static_cast<std::size_t>(worker) + 1]; ++node) {
      if (!is_done(node)) {
        return node;
      }
    }
    return -1;
  }

  int first_stuck_worker() const {
    int worker = 0;
    while (stuck_cell(worker) < 0) {
      ++worker;
    }
    return worker;
  }

  // A cell that `node` waits for; a barrier is looked through.
  int unfinished_need(int node) const {
    for (const int needed : graph_.needs[static_cast<std::size_t>(node)]) {
      if (!is_done(needed)) {
        return needed < graph_.num_cells() ? needed : unfinished_need(needed);
      }
    }
    // The first stuck cell of a list has a need that is stuck, and a barrier waits for cells only.
    base::invariant_failed("a stuck cell has a stuck need", __FILE__, __LINE__);
  }

  std::string name(int node) const {
    const Place place = graph_.place(node);
    return to_text(schedule_.workers[static_cast<std::size_t>(place.worker)]
                                    [static_cast<std::size_t>(place.index)]);
  }

  std::string place_text(int node) const {
    return "worker " + std::to_string(graph_.place(node).worker) + " stands at " + name(node) +
           ", which";
  }

  [[noreturn]] void tell_loop(int start, const std::vector<std::string>& sentences,
                              std::size_t first) const {
    constexpr std::size_t kMostSentences = 8;
    std::string message = "deadlock: ";
    const std::size_t end = std::min(sentences.size(), first + kMostSentences);
    for (std::size_t i = first; i < end; ++i) {
      message += (i == first ? "" : "; ") + sentences[i];
    }
    if (end < sentences.size()) {
      message += "; and so on over " + std::to_string(sentences.size() - first) + " workers";
    }
    refuse(schedule_, graph_.place(start),
           message + ". Move one of these actions before what it blocks");
  }

  const Schedule& schedule_;
  const Graph& graph_;
  std::vector<bool> done_;
};

}  // namespace

void check_deadlock(const Schedule& schedule, const Graph& graph, const std::vector<int>& order) {
  if (static_cast<int>(order.size()) < graph.num_nodes()) {
    Deadlock(schedule, graph, order).tell();
  }
}

}  // namespace headrace::schedule
