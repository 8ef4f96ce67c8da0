// What an error says.
#pragma once

#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace headrace::base {

/// The message of the error of type E that `act` must throw.
template <typename E, typename Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another kind of error: " << e.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace headrace::base
