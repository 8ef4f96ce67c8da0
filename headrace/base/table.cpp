#include "headrace/base/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::base {

namespace {

bool looks_like_quantity(std::string_view cell) {
  return cell.empty() || std::string_view("0123456789+-.").find(cell[0]) != std::string_view::npos;
}

}  // namespace

Table::Table(std::vector<std::string> header) : header_(std::move(header)) {}

Table& Table::add(std::vector<std::string> row) {
  HEADRACE_INVARIANT(row.size() <= header_.size());
  row.resize(header_.size());
  rows_.push_back(std::move(row));
  return *this;
}

std::string Table::to_text() const {
  std::vector<std::size_t> widths;
  std::vector<bool> flush_right;
  for (std::size_t column = 0; column < header_.size(); ++column) {
    std::size_t width = columns(header_[column]);
    bool right = !rows_.empty();
    for (const auto& row : rows_) {
      width = std::max(width, columns(row[column]));
      right = right && looks_like_quantity(row[column]);
    }
    widths.push_back(width);
    flush_right.push_back(right);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      line += column == 0 ? "" : "  ";
      line += flush_right[column] ? pad_left(cells[column], widths[column])
                                  : pad_right(cells[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(header_);
  std::vector<std::string> rule;
  for (const std::size_t width : widths) {
    rule.emplace_back(width, '-');
  }
  add_line(rule);
  for (const auto& row : rows_) {
    add_line(row);
  }
  return text;
}

}  // namespace headrace::base
