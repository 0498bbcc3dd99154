#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include <txinbox/inspect.hpp>

#include "console/terminal.hpp"

namespace txinbox::cli {

/// Consumed a second by each consumer, between two looks at the tables.
using Rates = std::map<std::string, double, std::less<>>;

/// What was removed between the two counts as if it had not been there: never below 0.
Rates rates_between(const Status& before, const Status& now, std::chrono::duration<double> time);

/// One value on one line. `now`: of a consumer without a rate, null.
std::string status_json(const Status& status, const std::optional<Rates>& now = {});

/// Two tables of one line for each consumer, or more where `columns` is not wide enough; 0: any width. `now`: with a
/// column for it.
std::string status_text(const Status& status, const std::optional<Rates>& now = {}, std::size_t columns = 0);

/// The same with no more consumers than there is room for, and how many more there are.
std::string status_text_fitting(const Status& status, const std::optional<Rates>& now, const TerminalSize& size);

}  // namespace txinbox::cli
