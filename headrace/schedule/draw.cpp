// The grid of a schedule: rows are workers, columns are time in slots.
#include <algorithm>
#include <tuple>
#include <utility>

#include "headrace/base/text.h"
#include "headrace/schedule/dependencies.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

// The slot in which each cell runs, one slot a cell, and which cells can never start.
struct Slots {
  std::vector<std::vector<int>> start;     // per worker, per cell
  std::vector<std::vector<bool>> started;  // false: it never starts; `start` is where it is drawn
};

// What is shown: workers and slots, ends excluded.
struct Window {
  int first_worker = 0;
  int end_worker = 0;
  int first_slot = 0;
  int end_slot = 0;
};

Slots find_slots(const Schedule& schedule) {
  const Graph graph = dependencies(schedule);
  const auto order = runnable_order(graph);
  std::vector<int> end(graph.needs.size(), -1);
  for (const int node : order) {
    const int before = graph.before(node);
    int start = before >= 0 ? end[static_cast<std::size_t>(before)] : 0;
    for (const int needed : graph.needs[static_cast<std::size_t>(node)]) {
      start = std::max(start, end[static_cast<std::size_t>(needed)]);
    }
    end[static_cast<std::size_t>(node)] = start + (node < graph.num_cells() ? 1 : 0);
  }
  Slots slots;
  for (int worker = 0; worker < schedule.num_workers(); ++worker) {
    auto& starts = slots.start.emplace_back();
    auto& started = slots.started.emplace_back();
    int next = 0;
    for (int node = graph.first[static_cast<std::size_t>(worker)];
         node < graph.first[static_cast<std::size_t>(worker) + 1]; ++node) {
      const int ended = end[static_cast<std::size_t>(node)];
      starts.push_back(ended >= 0 ? ended - 1 : next);
      started.push_back(ended >= 0);
      next = starts.back() + 1;
    }
  }
  return slots;
}

bool is_one_stage_each(const Schedule& schedule) {
  for (int worker = 0; worker < schedule.num_workers(); ++worker) {
    for (const Action& cell : schedule.workers[static_cast<std::size_t>(worker)]) {
      bool own = true;
      for_each_part(cell, [&](const Action& action) { own = own && action.stage == worker; });
      if (!own) {
        return false;
      }
    }
  }
  return true;
}

std::string cell_text(Action action, bool short_form, bool marked) {
  if (short_form) {
    action.stage = Action::kNone;
    for (Action& part : action.parts) {
      part.stage = Action::kNone;
    }
  }
  const std::string text = to_text(action);
  return marked ? "[" + text + "]" : text;
}

std::string draw_window(const Schedule& schedule, const Slots& slots, const Window& window,
                        Place mark) {
  const bool short_form = is_one_stage_each(schedule);
  const auto num_columns = static_cast<std::size_t>(window.end_slot - window.first_slot);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> widths(num_columns, 0);
  for (int worker = window.first_worker; worker < window.end_worker; ++worker) {
    const auto w = static_cast<std::size_t>(worker);
    auto& row = rows.emplace_back(num_columns);
    bool stuck = false;
    for (std::size_t i = 0; i < slots.start[w].size(); ++i) {
      const bool first_stuck = !slots.started[w][i] && !stuck;
      stuck = stuck || first_stuck;
      const int slot = slots.start[w][i];
      if (slot < window.first_slot || slot >= window.end_slot) {
        continue;
      }
      const bool marked = worker == mark.worker && static_cast<int>(i) == mark.index;
      const auto column = static_cast<std::size_t>(slot - window.first_slot);
      row[column] =
          (first_stuck ? "!" : "") + cell_text(schedule.workers[w][i], short_form, marked);
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string grid;
  const std::size_t label = std::to_string(schedule.num_workers() - 1).size();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const int worker = window.first_worker + static_cast<int>(r);
    std::string line = "worker " + base::pad_left(std::to_string(worker), label) + " |";
    for (std::size_t column = 0; column < num_columns; ++column) {
      line += " " + base::pad_right(rows[r][column], std::max<std::size_t>(widths[column], 1));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    grid += line + "\n";
  }
  return grid;
}

Window whole(const Schedule& schedule, const Slots& slots) {
  Window window{0, schedule.num_workers(), 0, 0};
  for (const auto& starts : slots.start) {
    window.end_slot = std::max(window.end_slot, starts.empty() ? 0 : starts.back() + 1);
  }
  return window;
}

// `size` numbers of [0, end) with `middle` near their middle.
std::pair<int, int> around(int middle, int size, int end) {
  const int first = std::clamp(middle - size / 2, 0, std::max(0, end - size));
  return {first, std::min(end, first + size)};
}

}  // namespace

std::string draw(const Schedule& schedule, int marked_worker, int marked_index) {
  const Slots slots = find_slots(schedule);
  return draw_window(schedule, slots, whole(schedule, slots), {marked_worker, marked_index});
}

std::string draw_near(const Schedule& schedule, int marked_worker, int marked_index) {
  constexpr int kMostWorkers = 12;
  constexpr int kMostSlots = 16;
  const Slots slots = find_slots(schedule);
  const Window all = whole(schedule, slots);
  int slot = 0;
  if (marked_worker >= 0 && marked_worker < schedule.num_workers()) {
    const auto& starts = slots.start[static_cast<std::size_t>(marked_worker)];
    if (marked_index >= 0 && marked_index < static_cast<int>(starts.size())) {
      slot = starts[static_cast<std::size_t>(marked_index)];
    }
  }
  Window window = all;
  std::tie(window.first_worker, window.end_worker) =
      around(std::max(0, marked_worker), kMostWorkers, all.end_worker);
  std::tie(window.first_slot, window.end_slot) = around(slot, kMostSlots, all.end_slot);
  std::string grid = draw_window(schedule, slots, window, {marked_worker, marked_index});
  if (window.end_slot - window.first_slot < all.end_slot ||
      window.end_worker - window.first_worker < all.end_worker) {
    grid += "(slots " + std::to_string(window.first_slot) + " to " +
            std::to_string(window.end_slot - 1) + " of " + std::to_string(all.end_slot) +
            ", workers " + std::to_string(window.first_worker) + " to " +
            std::to_string(window.end_worker - 1) + " of " + std::to_string(all.end_worker) + ")\n";
  }
  return grid;
}

}  // namespace headrace::schedule
