#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <txinbox/message_of.hpp>
#include <txinbox/redrive.hpp>

#include "base/text.hpp"
#include "cli/brokers/brokers.hpp"
#include "cli/help_text.hpp"
#include "cli/operator_options.hpp"
#include "cli/redrive_stored.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/duration.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"
#include "console/stop_signals.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "console/usage_error.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

struct RedriveCommandOptions {
  DatabaseOption database;
  std::string from, key, idle_exit = "3s";
  RedriveOptions redrive;
  OperatorOptions by;
  std::size_t rate = 0;
  bool stored = false, again = false, json = false;
};

/// Counts the dead letters by what the operator looks for, and prints those that are left.
class Report {
 public:
  explicit Report(bool dry_run) : dry_run_(dry_run) {}

  void operator()(const RedriveEvent& event) {
    switch (event.type) {
      case RedriveEventType::redriven:
      case RedriveEventType::would_redrive:
        ++groups_[{std::string(event.consumer), std::string(event.reason), std::string(event.error_class),
                   std::string(event.destination)}];
        ++redriven_;
        break;
      case RedriveEventType::left:
        left(event);
        break;
      case RedriveEventType::waiting:
        progress_.message(fmt::format("txinbox: {}; trying again", detail::one_line(event.text)));
        break;
      case RedriveEventType::source:
        progress_.message(fmt::format("txinbox: {}", detail::one_line(event.text)));
        break;
    }
    progress_.draw(fmt::format("{} {}, {} left", verb(), grouped(redriven_), grouped(left_)));
  }

  /// Says what was done if an error ends the command.
  void say_before_error() {
    progress_.erase();
    if (redriven_ + left_ == 0) return;
    message(fmt::format("txinbox: {} {}, left {} before the error", verb(), grouped(redriven_), grouped(left_)));
  }

  std::string as_json(const RedriveSummary& summary) {
    progress_.erase();
    auto published = Json::array();
    for (const auto& [group, count] : groups_) {
      const auto& [consumer, reason, error_class, destination] = group;
      published.append({{"consumer", consumer},
                        {"reason", reason},
                        {"error_class", error_class},
                        {"to", destination},
                        {"dead_letters", count}});
    }
    auto left = Json::array();
    for (const auto& [why, count] : summary.why) left.append({{"why", why}, {"dead_letters", count}});
    Json json{
        {"dry_run", dry_run_}, {"redriven", summary.redriven}, {"left", summary.left}, {"end", to_string(summary.end)}};
    json.set("published", std::move(published));
    json.set("left_because", std::move(left));
    return json.text();
  }

  std::string as_text(const RedriveSummary& summary) {
    progress_.erase();
    std::string text = fmt::format("{} {}, left {}", verb(), grouped(summary.redriven), grouped(summary.left));
    const TableWidth width{.columns = terminal_size().columns};
    if (!groups_.empty()) {
      std::vector<std::vector<std::string>> rows{{"DEAD LETTERS", "CONSUMER", "REASON", "ERROR CLASS", "TO"}};
      for (const auto& [group, count] : groups_) {
        const auto& [consumer, reason, error_class, destination] = group;
        rows.push_back({grouped(count), consumer, reason, error_class, destination});
      }
      text += "\n\n" + format_table(rows, {true}, width);
    }
    if (!summary.why.empty()) {
      std::vector<std::vector<std::string>> rows{{"LEFT", "BECAUSE"}};
      for (const auto& [why, count] : summary.why) rows.push_back({grouped(count), why});
      text += "\n\n" + format_table(rows, {true}, width);
    }
    return text;
  }

 private:
  const char* verb() const { return dry_run_ ? "would publish" : "published"; }

  /// Names the first dead letters that are left for a reason. An operator looks for them at the broker.
  void left(const RedriveEvent& event) {
    constexpr std::size_t named = 5;
    ++left_;
    const std::size_t count = ++named_[std::string(event.text)];
    if (count > named) return;
    progress_.message(fmt::format("txinbox: left {}: {}{}", printable(event.id), detail::one_line(event.text),
                                  count == named ? "; further ones are only counted" : ""));
  }

  const bool dry_run_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> groups_;
  std::map<std::string, std::size_t> named_;
  std::size_t redriven_ = 0, left_ = 0;
  Progress progress_;
};

std::string explanation(RedriveEnd end) {
  switch (end) {
    case RedriveEnd::too_many_left:
      return "ended: too many dead letters were left; there may be others behind them";
    case RedriveEnd::unreachable:
      return "ended: the broker or the database cannot be used, so dead letters may wait";
    case RedriveEnd::not_at_end:
      return "ended: dead letters wait at the broker, but it gave none; see whether another consumer of the group has "
             "its partitions, or, on RabbitMQ, raise prefetch in the URL";
    default:
      return {};
  }
}

int status_of(const RedriveSummary& summary) {
  switch (summary.end) {
    case RedriveEnd::stopped:
      return exit_stopped;
    case RedriveEnd::unreachable:
    case RedriveEnd::not_at_end:
      return exit_broker;
    case RedriveEnd::too_many_left:
      return exit_found;
    default:
      return summary.left == 0 ? exit_ok : exit_found;
  }
}

/// How many dead letters the broker may give without an acknowledgement. With a rate, those of ten minutes: RabbitMQ
/// takes them back after its consumer_timeout, which is 30 minutes by default.
std::size_t held_by_source(const RedriveCommandOptions& options) {
  constexpr std::size_t seconds = 600;
  constexpr std::size_t least = 1000;
  if (options.rate == 0) return options.redrive.max_left;
  return std::clamp(options.rate * seconds, least, std::max(least, options.redrive.max_left));
}

int run_stored(const RedriveCommandOptions& options) {
  RedriveOptions redrive = options.redrive;
  redrive.by = options.by.action();
  if (redrive.to.empty()) throw UsageError("redrive --stored: name the topic or queue with --to");
  if (!options.from.empty() || !options.key.empty() || !redrive.reason.empty() || options.rate != 0 || options.again) {
    throw UsageError("redrive --stored: --from, --key, --reason, --rate and --again are for dead letters of a broker");
  }
  return run_redrive_stored(options.database, redrive, options.json);
}

int run_redrive(RedriveCommandOptions options) {
  if (options.stored) return run_stored(options);
  // Not TXINBOX_FROM: that is what a service consumes, and no dead letters.
  if (options.from.empty()) throw UsageError("redrive: give --from URL, or --stored");
  const std::string url = source_url(options.from);
  if (!options.key.empty()) options.redrive.message_of = key_from(options.key);
  if (options.again) options.redrive.max_redrives = std::numeric_limits<int>::max();
  options.redrive.by = options.by.action();
  options.redrive.rate = static_cast<double>(options.rate);
  options.redrive.idle_exit = *parse_duration(options.idle_exit);
  StopSignals signals;
  options.redrive.stop = signals.token();
  const Republisher republisher = open_republisher(url);
  const auto source = open_source(url, "", held_by_source(options));
  Pool pool = open_database(options.database, false, 1);
  Report report(options.redrive.dry_run);
  options.redrive.observer = [&report](const RedriveEvent& event) { report(event); };
  RedriveSummary summary;
  try {
    summary = redrive(*source, republisher, pool, options.redrive);
  } catch (...) {
    report.say_before_error();
    throw;
  }
  Output output;
  output.line(options.json ? report.as_json(summary) : report.as_text(summary));
  if (const std::string text = explanation(summary.end); !text.empty()) message("txinbox: " + text);
  return output.failed() ? exit_stopped : status_of(summary);
}

}  // namespace

void add_redrive(Command app, Run& run) {
  auto options = std::make_shared<RedriveCommandOptions>();
  auto command = app.subcommand("redrive", "Publish dead letters again, to the topic or queue that they came from");
  RedriveOptions& redrive = options->redrive;
  options->database.add_to(command);
  command
      .option("--from", options->from,
              "The dead-letter topic or queue, without a password: kafka://HOST:PORT/TOPIC?group=NAME, "
              "amqp://USER@HOST/VHOST/QUEUE, rocketmq://HOST:PORT/%25DLQ%25GROUP?group=NAME; with TLS amqps://, "
              "rocketmqs://")
      .type("URL");
  command.flag("--stored", options->stored,
               "Instead of dead letters: add the stored payloads of parked messages to the outbox, for --to");
  command.option("--to", redrive.to, "The topic or queue to publish to; default: the header txinbox-source of each")
      .type("NAME");
  command
      .option("--consumer", redrive.consumer,
              "Only dead letters of this consumer; a dead letter that names none counts as one of it")
      .type("NAME");
  command.option("--reason", redrive.reason, "Only those with this reason, such as parked or rejected").type("REASON");
  command.option("--error-class", redrive.error_class, "Only those with this error class").type("CLASS");
  command
      .option("--key", options->key,
              "Where the business key of a dead letter without headers is, as for txinbox consume; for RocketMQ")
      .type("KEY");
  command.option("--max", redrive.max, "Publish at most this many; 0: all")
      .type("N")
      .with_default()
      .range(0, 1'000'000'000);
  command.option("--rate", options->rate, "Publish at most this many in a second; 0: no limit")
      .type("N")
      .with_default()
      .range(0, 1'000'000);
  command.flag("--again", options->again, "Publish also what was published again three times and failed each time");
  command.flag("--dry-run", redrive.dry_run, "Only print what would be published; change nothing");
  command.option("--idle-exit", options->idle_exit, "End after this time without a dead letter")
      .type("TIME")
      .with_default()
      .checked([](const std::string& text) -> std::string {
        const auto time = parse_duration(text);
        return time && time->count() > 0 ? "" : "write a time such as 500ms, 10s or 5m";
      });
  options->by.add_to(command, "--audit-reason");
  command.flag("--json", options->json, "Print JSON");
  command.add_help(
      {"txinbox redrive --from 'kafka://broker:9092/orders.dead?group=redrive' --dry-run",
       "txinbox redrive --from amqp://ops@broker/%2F/orders.dead --error-class std::runtime_error --rate 100",
       "txinbox redrive --from 'rocketmq://broker:8081/%25DLQ%25orders?group=redrive' \\",
       "  --to orders --consumer order-service --key /order/no",
       "txinbox redrive --stored --to orders --consumer order-service"},
      {{exit_ok, "all dead letters were published"},
       {exit_found, "some were left"},
       usage_status,
       database_status,
       {exit_stopped, "a signal ended it, or nobody reads standard output any more"},
       {exit_broker, "the broker could not be reached, or did not give all dead letters"}});
  command.on_chosen(run, [options] { return run_redrive(*options); });
}

}  // namespace txinbox::cli
