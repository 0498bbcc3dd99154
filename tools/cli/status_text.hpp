#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>

#include "console/terminal.hpp"

namespace txinbox::cli {

/// How many messages each consumer has consumed per second between two reads of the tables.
using Rates = std::map<std::string, double, std::less<>>;

/// If rows were removed between the two reads, the rate is too small, but never below 0.
Rates rates_between(const InboxStatus& before, const InboxStatus& now, std::chrono::duration<double> time);

using Pauses = std::vector<ConsumerPause>;

/// The status as JSON on one line. `now`: the rates; null for a consumer without a rate.
std::string status_json(const InboxStatus& status, const std::optional<Rates>& now = {}, const Pauses& pauses = {});

/// A line for each pause, and two tables with one line for each consumer. If `columns` is too small, there are more
/// tables; 0: any width. `now`: adds a column with the rates.
std::string status_text(const InboxStatus& status, const std::optional<Rates>& now = {}, std::size_t columns = 0,
                        const Pauses& pauses = {});

/// The same, but only as many consumers as the terminal has room for, the most active ones, and the number of the
/// others.
std::string status_text_fitting(const InboxStatus& status, const std::optional<Rates>& now, const TerminalSize& size,
                                const Pauses& pauses = {});

}  // namespace txinbox::cli
