// Schedules written as in a drawing, and what an error says.
#pragma once

#include <exception>
#include <string>

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

/// A schedule from its CSV text.
inline Schedule from_csv(const std::string& csv) {
  return parse_csv(csv, "test");
}

/// The message of the ScheduleError that `act` must throw.
template <typename Act>
std::string refusal_of(const Act& act) {
  try {
    act();
  } catch (const base::ScheduleError& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another kind of error: " << e.what();
    return {};
  }
  ADD_FAILURE() << "not refused";
  return {};
}

}  // namespace headrace::schedule
