#pragma once

#include <string>
#include <string_view>

#include "cli/brokers/broker_calls.hpp"

namespace txinbox::cli {

/// The calls of a component, such as "kafka". built_in.cpp finds them in the command itself; plugins.cpp loads the
/// plugin of the component. A build has one of the two files.
///
/// Errors: `UsageError` if this installation does not have the component, or if its plugin cannot be loaded or has
///          another version. It says how to get it.
const BrokerCalls& find_calls(std::string_view component);

/// The option of CMake that builds a component: "-DTXINBOX_WITH_KAFKA=ON".
std::string build_option(std::string_view component);

}  // namespace txinbox::cli
