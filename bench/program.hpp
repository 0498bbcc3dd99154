#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "database.hpp"

// Functions that the programs of the benchmark share. A program measures on one database and prints its raw figures as
// JSON.

namespace txinbox::bench {

/// The options that set `target`.
inline void add_target(CLI::App& app, Target& target, std::vector<std::string> databases) {
  app.add_option("--database", target.name, "Which database")->check(CLI::IsMember(std::move(databases)));
  app.add_option("--folder", target.folder, "For SQLite's files and others that are removed again")
      ->check(CLI::ExistingDirectory);
  app.add_flag("!--relaxed", target.durable, "Commits do not wait for the disk");
}

/// Prints what `measure` returns, or why it failed. Returns the status to exit with.
template <class Measure>
int print_figures(const char* program, Measure&& measure) {
  try {
    fmt::print("{}\n", measure().dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 1;
  }
  return 0;
}

}  // namespace txinbox::bench
