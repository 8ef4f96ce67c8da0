// What an error says, and whether it says enough.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::test {

/// The message of the `Kind` that `call` throws; any other exception passes on.
template <typename Kind = base::ConfigError, typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Every one of `parts` stands in `message`.
inline void expect_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
  }
}

}  // namespace headrace::test
