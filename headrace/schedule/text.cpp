// One action as text and back: PyTorch's dialect (torch.distributed.pipelining, _Action) with
// suffixes of ours. The grammar stands in docs/formats/schedule.md.
#include "headrace/schedule/text.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::schedule {

namespace {

constexpr int kMostNumber = 1'000'000;  // stages, microbatches, versions
constexpr int kMostDepth = 16;          // parts inside parts
constexpr std::size_t kMostCellBytes = 4096;
constexpr std::string_view kHex = "0123456789ABCDEF";

bool is_receive(Kind kind) {
  return kind == Kind::kRecvForward || kind == Kind::kRecvBackward;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_plain(char c) {
  return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '.' ||
         c == '-' || c == '/';
}

std::string number_or_nothing(std::string_view before, int number) {
  return number == Action::kNone ? std::string() : std::string(before) + std::to_string(number);
}

std::string escape(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c)) {
      escaped += c;
    } else {
      escaped += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return escaped;
}

// Recursive descent over one cell; `at_` only grows, so it ends.
class Parser {
 public:
  explicit Parser(std::string_view cell) : cell_(cell) {}

  Action whole() {
    Action action = parse(0);
    if (at_ != cell_.size()) {
      fail("nothing more here");
    }
    return action;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw base::ScheduleError(
        "cannot read the action " + base::quote(cell_) + ": expected " + expected +
        " at character " + std::to_string(at_ + 1) + ", found " +
        (at_ < cell_.size() ? base::quote(cell_.substr(at_, 12)) : "its end") +
        "; an action looks like 2F0, 1SEND_F3 or (0F3;3B1)OVERLAP_F_B");
  }

  char next() const { return at_ < cell_.size() ? cell_[at_] : '\0'; }

  bool take(char c) {
    const bool there = at_ < cell_.size() && cell_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }

  int number() {
    const std::size_t start = at_;
    while (is_digit(next())) {
      ++at_;
    }
    const auto value = base::parse_integer(cell_.substr(start, at_ - start), 0, kMostNumber);
    if (!value) {
      at_ = start;
      fail("a number from 0 to " + base::thousands(kMostNumber));
    }
    return static_cast<int>(*value);
  }

  int optional_number() { return is_digit(next()) ? number() : Action::kNone; }

  Kind kind() {
    const std::size_t start = at_;
    while ((next() >= 'A' && next() <= 'Z') || next() == '_') {
      ++at_;
    }
    const std::string_view name = cell_.substr(start, at_ - start);
    std::vector<std::string> names;
    for (const Kind candidate : all_kinds()) {
      if (kind_name(candidate) == name) {
        return candidate;
      }
      names.emplace_back(kind_name(candidate));
    }
    at_ = start;
    fail("one of " + base::join(names) + base::did_you_mean(name, names));
  }

  std::vector<Action> parts(int depth) {
    if (depth == kMostDepth) {
      fail("at most " + std::to_string(kMostDepth) + " parentheses inside each other");
    }
    std::vector<Action> parsed;
    do {
      parsed.push_back(parse(depth + 1));
    } while (take(';'));
    if (!take(')')) {
      fail("';' or ')'");
    }
    return parsed;
  }

  std::string value() {
    std::string name;
    while (!take(']')) {
      if (take('%')) {
        const std::size_t high = kHex.find(next());
        const std::size_t low = at_ + 1 < cell_.size() ? kHex.find(cell_[at_ + 1]) : kHex.npos;
        if (next() == '\0' || high == kHex.npos || low == kHex.npos) {
          fail("two hexadecimal digits (0-9, A-F)");
        }
        name += static_cast<char>(high * 16 + low);
        at_ += 2;
      } else if (is_plain(next())) {
        name += cell_[at_++];
      } else {
        fail("a letter, digit, '_', '.', '-', '/', %XX or ']'");
      }
    }
    if (name.empty()) {
      fail("a value's name before ']'");
    }
    return name;
  }

  Action parse(int depth) {
    Action action;
    action.stage = optional_number();
    if (take('(')) {
      action.parts = parts(depth);
    }
    action.kind = kind();
    action.microbatch = optional_number();
    if (take(is_receive(action.kind) ? '<' : '>')) {
      action.peer_stage = number();
    }
    if (take('[')) {
      action.value = value();
    }
    if (take('#')) {
      action.replica = number();
    }
    if (take('@')) {
      action.version = number();
    }
    return action;
  }

  std::string_view cell_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_text(const Action& action) {
  std::string text = number_or_nothing("", action.stage);
  for (std::size_t i = 0; i < action.parts.size(); ++i) {
    text += i == 0 ? '(' : ';';
    text += to_text(action.parts[i]);
  }
  text += action.parts.empty() ? "" : ")";
  text += kind_name(action.kind);
  text += number_or_nothing("", action.microbatch);
  text += number_or_nothing(is_receive(action.kind) ? "<" : ">", action.peer_stage);
  if (!action.value.empty()) {
    text += "[" + escape(action.value) + "]";
  }
  text += number_or_nothing("#", action.replica);
  text += number_or_nothing("@", action.version);
  return text;
}

Action parse_action(std::string_view cell) {
  if (cell.size() > kMostCellBytes) {
    throw base::ScheduleError("cannot read the action " + base::quote(cell) +
                              ": a cell has at most " + std::to_string(kMostCellBytes) + " bytes");
  }
  return Parser(cell).whole();
}

}  // namespace headrace::schedule
