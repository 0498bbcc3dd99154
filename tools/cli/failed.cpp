#include <memory>

#include "cli/failed_change.hpp"
#include "cli/failed_list.hpp"
#include "cli/failed_options.hpp"
#include "cli/help_text.hpp"
#include "cli/subcommands.hpp"

namespace txinbox::cli {

void add_failed(Command app, Run& run) {
  auto failed = app.subcommand("failed", "List the messages that failed, let them run again, or give them up");
  failed.requires_subcommand();

  auto listed = std::make_shared<FailedOptions>();
  auto list = failed.subcommand("list", "The messages that failed and are not consumed, the latest first");
  listed->add_list_to(list);
  list.add_help({"txinbox failed list --consumer order-service --state parked",
                 "txinbox failed list --payload --consumer order-service o22"},
                {{exit_ok, "all is well, also when there is none"},
                 {exit_found, "a key that was given is not listed, or has no payload"},
                 usage_status,
                 database_status,
                 output_status});
  list.on_chosen(run, [listed] { return run_failed_list(*listed); });

  auto retried = std::make_shared<FailedOptions>();
  auto retry = failed.subcommand("retry", "Let the next delivery of a parked or failing message run");
  retried->add_change_to(retry, {"parked", "failing"});
  retry.add_help({"txinbox failed retry --consumer order-service o22",
                  "txinbox failed retry --all --error-class 'postgresql 40001' --older-than 10m"},
                 {{exit_ok, "what was chosen was changed"},
                  {exit_found, "nothing was changed, or not every key of the file"},
                  usage_status,
                  database_status,
                  output_status});
  retry.on_chosen(run, [retried] { return run_failed_retry(*retried); });

  auto discarded = std::make_shared<FailedOptions>();
  auto discard = failed.subcommand("discard", "Give a message up for good: later deliveries do not run");
  discarded->add_change_to(discard, {"parked", "torn", "failing"});
  discard.add_help({"txinbox failed discard --consumer order-service o22",
                    "txinbox failed discard --consumer order-service --keys-from keys.txt"},
                   {{exit_ok, "what was chosen was changed"},
                    {exit_found, "nothing was changed, or not every key of the file"},
                    usage_status,
                    database_status,
                    output_status});
  discard.on_chosen(run, [discarded] { return run_failed_discard(*discarded); });
}

}  // namespace txinbox::cli
