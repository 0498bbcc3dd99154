#include <csignal>
#include <iostream>
#include <map>
#include <random>

#include <soci/soci.h>
#include <CLI/CLI.hpp>
#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "console/output.hpp"
#include "torture/options.hpp"
#include "torture/torture.hpp"
#include "torture/worker.hpp"

namespace {

using namespace txinbox;

int run(torture::Arguments& arguments) {
  try {
    if (arguments.worker.number != 0) return torture::run_worker(arguments.worker, arguments.torture.database);
    return arguments.removes_leftovers ? torture::remove_leftovers(arguments.torture)
                                       : torture::torture(arguments.torture);
  } catch (const Error& error) {
    cli::message(std::string("txinbox-torture: ") + error.what());
    return error.code() == ErrorCode::invalid_argument ? cli::exit_usage : cli::exit_database;
  } catch (const std::exception&) {
    cli::message("txinbox-torture: " + cli::describe_setup_error(std::current_exception()));
    return cli::exit_database;
  }
}

}  // namespace

int main(int argc, char** argv) {
  cli::occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // if a worker or a reader has ended, write() returns an error instead

  // The check is before the parser, because the parser's errors repeat words that it does not know.
  for (int i = 1; i < argc; ++i) {
    if (!cli::is_url_with_password(argv[i])) continue;
    cli::message(
        "txinbox-torture: the command line contains a database URL with a password, which every user of this machine "
        "can "
        "read; put the URL into the environment variable TXINBOX_DB, or the password into ~/.my.cnf or ~/.pgpass");
    return cli::exit_usage;
  }

  CLI::App app{"Tests on your own database that each message takes effect exactly once", "txinbox-torture"};
  app.set_version_flag("--version", std::string("txinbox-torture ") + version());
  torture::Arguments arguments;
  torture::add_options(app, arguments);
  try {
    app.parse(argc, argv);
    torture::check_options(app, arguments);
  } catch (const CLI::Success& success) {
    return app.exit(success, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    cli::message(std::string("txinbox-torture: ") + error.what() + "\nRun with --help for more information.");
    return cli::exit_usage;
  }
  return run(arguments);
}
