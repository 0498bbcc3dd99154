#include <memory>

#include <CLI/CLI.hpp>

#include "cli/failed_change.hpp"
#include "cli/failed_list.hpp"
#include "cli/failed_options.hpp"
#include "cli/help_text.hpp"
#include "cli/subcommands.hpp"

namespace txinbox::cli {

void add_failed(CLI::App& app, Run& run) {
  auto* failed = app.add_subcommand("failed", "List the messages that failed, let them run again, or give them up");
  failed->require_subcommand(1);

  auto listed = std::make_shared<FailedOptions>();
  auto* list = failed->add_subcommand("list", "The messages that failed and are not consumed, the latest first");
  listed->add_list_to(*list);
  add_help(*list,
           {"txinbox failed list --consumer order-service --state parked",
            "txinbox failed list --payload --consumer order-service o22"},
           {{exit_ok, "all is well, also when there is none"},
            {exit_found, "a key that was given is not listed, or has no payload"},
            usage_status,
            database_status,
            output_status});
  list->callback([listed, &run] { run = [listed] { return run_failed_list(*listed); }; });

  auto retried = std::make_shared<FailedOptions>();
  auto* retry = failed->add_subcommand("retry", "Let the next delivery of a parked or failing message run");
  retried->add_change_to(*retry, {"parked", "failing"});
  add_help(*retry,
           {"txinbox failed retry --consumer order-service o22",
            "txinbox failed retry --all --error-class 'postgresql 40001' --older-than 10m"},
           {{exit_ok, "what was chosen was changed"},
            {exit_found, "nothing was changed, or not every key of the file"},
            usage_status,
            database_status,
            output_status});
  retry->callback([retried, &run] { run = [retried] { return run_failed_retry(*retried); }; });

  auto discarded = std::make_shared<FailedOptions>();
  auto* discard = failed->add_subcommand("discard", "Give a message up for good: later deliveries do not run");
  discarded->add_change_to(*discard, {"parked", "torn", "failing"});
  add_help(*discard,
           {"txinbox failed discard --consumer order-service o22",
            "txinbox failed discard --consumer order-service --keys-from keys.txt"},
           {{exit_ok, "what was chosen was changed"},
            {exit_found, "nothing was changed, or not every key of the file"},
            usage_status,
            database_status,
            output_status});
  discard->callback([discarded, &run] { run = [discarded] { return run_failed_discard(*discarded); }; });
}

}  // namespace txinbox::cli
