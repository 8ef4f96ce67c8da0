// One of a few names that a user types.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::optim {

/// The index of `name` among `choices`, in any case.
/// @throws base::ConfigError naming `what`, the name found, the nearest and all that is allowed.
std::size_t choose(std::string_view what, const std::string& name,
                   const std::vector<std::string>& choices);

}  // namespace headrace::optim
