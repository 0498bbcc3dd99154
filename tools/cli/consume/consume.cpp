#include <functional>
#include <memory>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include <txinbox/schema.hpp>
#include <txinbox/tx_consumer.hpp>

#include "backend/database.hpp"
#include "cli/brokers/brokers.hpp"
#include "cli/consume/broker_run.hpp"
#include "cli/consume/consume_run.hpp"
#include "cli/consume/input_file.hpp"
#include "cli/help_text.hpp"
#include "cli/sql/check_sql.hpp"
#include "cli/sql/prepared_script.hpp"
#include "cli/sql/user_sql.hpp"
#include "cli/subcommands.hpp"
#include "console/duration.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/usage_error.hpp"
#include "console/wait_notice.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::cli {
namespace {

std::string read_sql(const ConsumeOptions& options) {
  return options.sql_file.empty() ? options.sql : read_whole(options.sql_file, max_sql_size);
}

/// The broker's URL. Empty: the messages are lines of a file.
///
/// Errors: `UsageError` for options that exclude each other.
std::string broker_url(const ConsumeOptions& options) {
  // With a file, the environment variable is ignored.
  std::string url = options.file.empty() ? source_url(options.from) : std::string();
  if (!url.empty() && options.stop_on_error) {
    throw UsageError("--stop-on-error is for a file; it does not work with --from or TXINBOX_FROM");
  }
  if (options.hold_parked && url.starts_with("amqp")) {
    throw UsageError(
        "--hold-parked needs a broker that keeps an order; RabbitMQ keeps none for a message that comes back");
  }
  if (!url.empty()) return url;
  const auto needs_broker = [](bool is_given, const char* name) {
    if (is_given) throw UsageError(std::string(name) + " needs --from: it is for messages of a broker");
  };
  needs_broker(!options.dead_letters.empty(), "--dead-letters");
  needs_broker(options.workers != 1, "--workers");
  needs_broker(!options.order.empty(), "--order");
  needs_broker(options.hold_parked, "--hold-parked");
  needs_broker(!options.backoff.empty(), "--backoff");
  needs_broker(!options.idle_exit.empty(), "--idle-exit");
  needs_broker(options.breaker != BreakerOptions{}.failures, "--breaker");
  return url;
}

/// Says that the messages come from a broker, if somebody has also given lines. `--from` says this itself.
void note_unread_lines() {
  struct stat input {};
  if (::fstat(STDIN_FILENO, &input) != 0 || !(S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode))) return;
  message("txinbox: TXINBOX_FROM is set, so the messages come from its broker, and standard input is not read");
}

int run_consume(ConsumeOptions options) {
  const bool is_from_option = !options.from.empty();
  options.from = broker_url(options);
  if (!options.from.empty() && !is_from_option) note_unread_lines();
  const UserSql& database = user_sql_of(options.database.database());
  const std::string sql = read_sql(options);
  SqlSyntax syntax = database.default_syntax();
  Script script = parse_script(sql, database, syntax);
  std::optional<MessageReader> messages(std::in_place, options, script, SqlLimits());
  std::optional<InputFile> input;
  if (options.from.empty()) input.emplace(options.file);

  StopSignals signals;
  WaitNotice notice;
  std::optional<WaitNotice::Call> opening(std::in_place, notice);
  Pool pool = open_database(options.database, options.verbose, options.workers);
  {
    auto connection = pool.acquire(signals.token());
    verify(connection);
    const backend::ConnectionPtr native = backend::connection_of(connection);
    if (const auto actual = database.syntax(*native); actual != syntax) {
      syntax = actual;
      script = parse_script(sql, database, syntax);
    }
    const SqlLimits limits = database.limits(*native);
    messages.emplace(options, script, limits);
    script.most_together = most_together(script, *native, limits);
    check_sql(connection.session(), script);
  }
  opening.reset();
  if (!options.from.empty()) {
    const auto source = open_source(options.from, options.dead_letters, 4 * options.batch * options.workers);
    BrokerRun broker_run(options, script, *messages, signals);
    TxConsumer consumer(
        pool, options.consumer,
        {.stop = signals.token(), .listeners = {on_event(std::ref(broker_run))}, .max_attempts = options.max_attempts});
    return broker_run.run(*source, consumer);
  }
  TxConsumer consumer(pool, options.consumer, {.stop = signals.token(), .max_attempts = options.max_attempts});
  return ConsumeRun(options, script, *messages, consumer, signals, notice).run(input->fd());
}

}  // namespace

void add_consume(Command app, Run& run) {
  auto options = std::make_shared<ConsumeOptions>();
  auto command = app.subcommand("consume", "Run SQL for each line of JSON, once for each business key");
  options->database.add_to(command);
  command.option("--consumer", options->consumer, "The consumer's name; keys of other consumers are independent")
      .required()
      .type("NAME");
  command
      .option("--key", options->key,
              "Where a line's business key is: a JSON Pointer (/order/no), or a template of them "
              "(coupon:{/coupon/id}:{/user}). Of a broker's message also @key, its record key, or @header:NAME, alone "
              "or in a template ({@header:ce_source}#{@header:ce_id}); for binary ones @key-hex or @header-hex:NAME")
      .required()
      .type("KEY");
  auto sql = command.group("SQL", "What to run; :name is the line's member of that name");
  sql.option("--sql", options->sql, "The statements, with semicolons between them").type("TEXT");
  sql.option("--sql-file", options->sql_file, "A file with the statements").type("FILE");
  sql.requires_option();
  command.option("--message-id", options->message_id, "Where the broker's message id is; it is stored for tracing")
      .type("POINTER");
  command
      .option("--content", options->content,
              "Where a value is that must be the same in all deliveries of a key. May be repeated")
      .type("POINTER")
      .once_each();
  command
      .option("--bind", options->binds,
              "Where the value of :NAME is; an empty pointer is the whole line. May be repeated")
      .type("NAME=POINTER")
      .once_each();
  command
      .option("--batch", options->batch,
              "The most messages in one transaction; it does not wait until there are so many")
      .type("N")
      .with_default()
      .range(1, max_batch);
  command
      .option("--max-attempts", options->max_attempts,
              "After how many failed deliveries a message is parked and does not run again; 0: never")
      .type("N")
      .with_default()
      .range(0, 1'000'000'000);
  command.flag("--keep-payload", options->keep_payload,
               "Keep the line of a message that fails, for txinbox failed list --payload");
  const auto stop_on_error =
      command.flag("--stop-on-error", options->stop_on_error, "Stop at the first message that fails");
  command.flag("--json", options->json, "Print a JSON object for each message after its commit");
  command.flag("--verbose", options->verbose,
               "Print the database's own error text, too; it can contain values of the message");
  auto broker = command.group("Broker", "Consume from a message broker instead of a file");
  auto from = broker.option("--from", options->from,
                            "The broker, without a password: kafka://HOST:PORT/TOPIC?group=NAME, "
                            "amqp://USER@HOST/VHOST/QUEUE, rocketmq://HOST:PORT/TOPIC?group=NAME; with TLS amqps://, "
                            "rocketmqs://; default: the environment variable TXINBOX_FROM");
  from.type("URL").excludes(stop_on_error);
  broker
      .option("--dead-letters", options->dead_letters,
              "The topic or queue for messages that cannot be consumed: rejected, parked, in conflict, without a key")
      .type("NAME");
  broker.option("--workers", options->workers, "How many connections run messages at the same time")
      .type("N")
      .with_default()
      .range(1, 1000);
  broker
      .option("--order", options->order,
              "Which messages run in order: all messages of a partition (lane), or those with the same record "
              "key in a partition (key); default: key on Kafka with several workers, else lane")
      .type("ORDER")
      .one_of({"lane", "key"});
  broker.flag("--hold-parked", options->hold_parked,
              "A parked message becomes no dead letter: it and the later ones in its order wait until an operator "
              "retries or discards it");
  const auto is_time = [](const std::string& text) -> std::string {
    if (parse_duration(text)) return {};
    return "write a time such as 500ms, 10s or 5m";
  };
  broker
      .option("--backoff", options->backoff,
              "The wait before a message that failed runs again; it doubles up to 30s, or stays if it is longer; "
              "default: 200ms")
      .type("TIME")
      .checked(is_time);
  broker
      .option("--breaker", options->breaker,
              "With --max-attempts: if the SQL fails for this many keys in a row, failures do not count any more, and "
              "one message at a time is tried until one is consumed; 0: never")
      .type("N")
      .with_default()
      .range(0, 1'000'000'000);
  broker
      .option("--idle-exit", options->idle_exit, "End after this time without a new or running message; default: never")
      .type("TIME")
      .checked(is_time);
  command.option("file", options->file, "JSON lines; default: standard input").shown_as("[FILE]").excludes(from);
  command.add_help(
      {"txinbox consume --db sqlite:orders.db --consumer order-service --key /no \\",
       "  --sql 'insert into t_order(no, sku) values (:no, :sku)' orders.jsonl",
       "txinbox consume --from 'kafka://broker:9092/orders?group=order-service' --dead-letters orders.dead \\",
       "  --consumer order-service --key /no --sql-file orders.sql --max-attempts 5 --workers 4"},
      {{exit_ok, "every message has taken effect, now or earlier"},
       {exit_found, "a message failed, or became a dead letter; standard error names it"},
       {exit_usage, "the command line, or the SQL in it, is wrong"},
       {exit_database, "the database or the broker cannot be used; run it again on the same input"},
       {exit_stopped, "SIGINT or SIGTERM, or nobody reads standard output any more"},
       {exit_broker, "with --idle-exit: the broker cannot be reached, or messages wait that it did not give"}});
  command.on_chosen(run, [options] { return run_consume(*options); });
}

}  // namespace txinbox::cli
