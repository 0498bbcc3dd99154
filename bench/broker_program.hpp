#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "broker_ways.hpp"
#include "program.hpp"

namespace txinbox::bench {

/// The program of a section that measures a broker. A `Bench` gets the target and the options, and its `measure`
/// returns the figures.
template <class Bench>
int broker_program(int argc, char** argv, const char* program, const char* broker) {
  CLI::App app(std::string("Measures the loop of a consumer of ") + broker);
  Target target;
  BrokerOptions options;
  add_target(app, target, {"sqlite3", "mariadb", "postgresql"});
  app.add_option("--port", options.port, "Of the broker on the loopback")->required();
  app.add_option("--rounds", options.rounds);
  app.add_option("--messages", options.messages, "That the broker has when a slot begins");
  app.add_option("--slot-ms", options.slot_ms);
  CLI11_PARSE(app, argc, argv);
  return print_figures(program, [&] { return Bench(target, options).measure(); });
}

}  // namespace txinbox::bench
