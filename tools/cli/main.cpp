#include <csignal>
#include <exception>
#include <string>

#include <soci/error.h>
#include <txinbox/error.hpp>

#include "base/text.hpp"
#include "cli/brokers/brokers.hpp"
#include "cli/command_line.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "console/output.hpp"

namespace {

using namespace txinbox::cli;

int status_of(const txinbox::Error& error) {
  switch (error.code()) {
    case txinbox::ErrorCode::invalid_argument:
    case txinbox::ErrorCode::invalid_key:
      return exit_usage;
    default:
      return exit_database;
  }
}

int run_reporting_errors(const Run& run) {
  try {
    return run();
  } catch (const txinbox::Error& error) {
    message("txinbox: " + txinbox::detail::one_line(error.what()));
    return status_of(error);
  } catch (const soci::soci_error&) {
    message("txinbox: " + describe_setup_error(std::current_exception()));
    return exit_database;
  } catch (const txinbox::LeaseStoreError& error) {
    message("txinbox: " + txinbox::detail::one_line(error.what()));
    return exit_database;
  } catch (const std::exception& error) {
    message("txinbox: " + txinbox::detail::one_line(error.what()));
    return exit_found;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // if the reader of a pipe has ended, write() returns an error instead

  // The check is before the parser, because the parser's errors repeat words that it does not know.
  for (int i = 1; i < argc; ++i) {
    if (!is_url_with_password(argv[i]) && !is_broker_url_with_password(argv[i])) continue;
    message(
        "txinbox: the command line contains a URL with a password, which every user of this machine can read; put a "
        "database's URL into the environment variable TXINBOX_DB, or the password into ~/.my.cnf or ~/.pgpass; "
        "the password of a broker, of Redis or of a webhook belongs into " +
        password_variables());
    return exit_usage;
  }

  CommandLine command_line(program_name, program_help);
  Run run;
  add_all(command_line.command(), run);
  if (const auto status = command_line.parse(argc, argv)) return *status;
  return run_reporting_errors(run);
}
