// A text table with aligned columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headrace::base {

/// Rows of cells under a header. Columns whose cells all look like quantities (they begin with a
/// digit, a sign or a point) are set flush right, the others flush left; two spaces between them.
class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// A row shorter than the header is filled with empty cells; a longer one is a broken invariant.
  Table& add(std::vector<std::string> row);

  std::size_t num_rows() const { return rows_.size(); }

  /// The header, a line of dashes, the rows; every line ends with a newline and no blanks.
  std::string to_text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace headrace::base
