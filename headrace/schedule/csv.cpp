// The lists of all workers as CSV: what torch.distributed.pipelining writes and reads.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostRows = 4096;
constexpr std::size_t kMostActions = 1'000'000;

// Takes the part of `rest` up to `separator` (or all of it) off its front.
std::string_view split_off(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

std::vector<Action> parse_row(std::string_view line, std::size_t row, const std::string& name,
                              std::size_t& num_actions) {
  std::vector<Action> actions;
  for (std::size_t column = 1; !line.empty(); ++column) {
    const std::string_view cell = base::trim(split_off(line, ','));
    if (cell.empty()) {
      continue;
    }
    const auto where = [&] {
      return name + ": row " + std::to_string(row) + ", column " + std::to_string(column) + ": ";
    };
    if (++num_actions > kMostActions) {
      throw base::ScheduleError(where() + "more than " + base::thousands(kMostActions) +
                                " actions; give fewer workers or microbatches");
    }
    try {
      actions.push_back(parse_action(cell));
    } catch (const base::ScheduleError& e) {
      throw base::ScheduleError(where() + e.what());
    }
  }
  return actions;
}

// placement[stage], from what each row names.
std::vector<std::vector<int>> find_placement(const Schedule& schedule) {
  // Per stage and worker: the first microbatch that the worker forwards.
  std::vector<std::map<int, int>> first_forwarded(static_cast<std::size_t>(schedule.num_stages));
  for (int worker = 0; worker < schedule.num_workers(); ++worker) {
    for (const Action& cell : schedule.workers[static_cast<std::size_t>(worker)]) {
      for_each_part(cell, [&](const Action& action) {
        if (action.stage == Action::kNone) {
          return;
        }
        auto& holders = first_forwarded[static_cast<std::size_t>(action.stage)];
        int& first = holders.try_emplace(worker, std::numeric_limits<int>::max()).first->second;
        if (action.kind == Kind::kForward) {
          first = std::min(first, action.microbatch);
        }
      });
    }
  }
  std::vector<std::vector<int>> placement;
  for (const auto& holders : first_forwarded) {
    std::vector<std::pair<int, int>> ordered;
    for (const auto& [worker, first] : holders) {
      ordered.emplace_back(first, worker);
    }
    std::sort(ordered.begin(), ordered.end());
    placement.emplace_back();
    for (const auto& [first, worker] : ordered) {
      placement.back().push_back(worker);
    }
  }
  return placement;
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  std::string csv;
  for (const auto& list : schedule.workers) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      csv += i == 0 ? "" : ",";
      csv += to_text(list[i]);
    }
    csv += "\n";
  }
  return csv;
}

Schedule parse_csv(std::string_view csv, std::string name) {
  if (csv.size() > kMostBytes) {
    throw base::ScheduleError(name + ": " + base::thousands(static_cast<std::int64_t>(csv.size())) +
                              " bytes; a schedule has at most " + base::thousands(kMostBytes));
  }
  if (csv.starts_with("\xEF\xBB\xBF")) {
    csv.remove_prefix(3);  // the byte order mark that spreadsheets put there
  }
  Schedule schedule;
  schedule.name = std::move(name);
  std::size_t num_actions = 0;
  while (!csv.empty()) {
    const std::size_t row = schedule.workers.size() + 1;
    if (row > kMostRows) {
      // Empty rows at the end are no workers, but so many of them are no schedule either.
      throw base::ScheduleError(schedule.name + ": row " + std::to_string(row) +
                                ": a schedule has at most " + base::thousands(kMostRows) +
                                " workers");
    }
    schedule.workers.push_back(parse_row(split_off(csv, '\n'), row, schedule.name, num_actions));
  }
  while (!schedule.workers.empty() && schedule.workers.back().empty()) {
    schedule.workers.pop_back();
  }
  if (schedule.workers.empty()) {
    throw base::ScheduleError(schedule.name +
                              ": no action in it; give one row per worker, such as 0F0,0B0");
  }
  for (const auto& list : schedule.workers) {
    for (const Action& cell : list) {
      for_each_part(cell, [&](const Action& action) {
        schedule.num_stages = std::max(schedule.num_stages, action.stage + 1);
        schedule.num_microbatches = std::max(schedule.num_microbatches, action.microbatch + 1);
      });
    }
  }
  schedule.placement = find_placement(schedule);
  return schedule;
}

}  // namespace headrace::schedule
