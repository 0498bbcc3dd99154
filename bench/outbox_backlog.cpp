#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/outbox_relay.hpp>

#include "measure.hpp"
#include "outbox.hpp"
#include "watched_relay.hpp"

namespace txinbox::bench {
namespace {

long long rows_in(soci::session& sql) {
  long long rows = 0;
  sql << "SELECT count(*) FROM txinbox_outbox_message", soci::into(rows);
  return rows;
}

/// Confirms every message, and records which messages it has confirmed.
class Confirming {
 public:
  explicit Confirming(long long messages) : seen_(static_cast<std::size_t>(messages)) {}

  std::vector<PublishResult> operator()(std::span<const OutgoingMessage> messages) {
    for (const OutgoingMessage& each : messages) {
      auto seen = seen_.at(outbox_number(each.id));
      if (seen) throw std::runtime_error("a message was published twice: " + each.id);
      seen = true;
    }
    return std::vector<PublishResult>(messages.size());
  }

 private:
  std::vector<bool> seen_;
};

}  // namespace

Json measure_outbox_drain(const Target& target, const OutboxOptions& options) {
  const Database database(target);
  Pool pool = database.pool(2);
  const auto connection = pool.acquire();
  fill_outbox(connection, options.backlog, options.keys);
  Confirming confirming(options.backlog);

  constexpr int parts = 10;
  Json rates = Json::array();
  Progress progress("tenths of the backlog", parts);
  const auto start = Clock::now();
  WatchedRelay relay(pool, [&](std::span<const OutgoingMessage> messages) { return confirming(messages); },
                     {.batch = options.batch});
  auto last = start;
  for (int part = 1; part <= parts; ++part) {
    relay.wait_for(options.backlog * part / parts);
    const double seconds = microseconds_since(last) / 1e6;
    last = Clock::now();
    rates.push_back(static_cast<double>(options.backlog) / parts / seconds);
    progress.step();
  }
  const double seconds = microseconds_since(start) / 1e6;
  if (rows_in(connection) != 0) throw std::runtime_error("the outbox is not empty");
  return {
      {"messages", options.backlog}, {"batch", options.batch}, {"seconds", seconds}, {"messages_per_second", rates}};
}

namespace {

/// A relay that publishes only a given number of batches, and measures the time of each. This is the time that the
/// relay takes between the calls of the publisher, from the first call of a batch to the first call of the next one.
/// The relay removes the rows of a batch and reads the next one in this time. A batch has several calls if it has
/// several rows of a key. The first error of the relay ends the wait.
class PacedRelay {
 public:
  PacedRelay(Pool& pool, std::size_t batch)
      : batch_(batch),
        begun_(Clock::now()),
        relay_(pool, [this](std::span<const OutgoingMessage> messages) { return publish(messages); },
               {.batch = batch, .stop = stop_.get_token(), .listeners = {on_event([this](const RelayEvent& event) {
                                                             observe(event);
                                                           })}}) {
    wait_for(1);
    first_ = std::exchange(times_, {}).front();
  }
  ~PacedRelay() {
    stop_.request_stop();
    allow(1);  // the destructor of the relay waits for the current call
  }
  PacedRelay(const PacedRelay&) = delete;
  PacedRelay& operator=(const PacedRelay&) = delete;

  /// The time until the first batch was read, in milliseconds. The relay reads from the beginning of the table.
  double first() const noexcept { return first_; }

  /// Lets the relay publish this number of batches. Returns the time of each, in milliseconds.
  std::vector<double> run(std::size_t batches) {
    allow(batches);
    wait_for(batches);
    const std::lock_guard lock(mutex_);
    return std::exchange(times_, {});
  }

 private:
  std::vector<PublishResult> publish(std::span<const OutgoingMessage> messages) {
    std::unique_lock lock(mutex_);
    between_calls_ += microseconds_since(begun_) / 1e3;
    if (published_ % batch_ == 0) {
      times_.push_back(std::exchange(between_calls_, 0));
      changed_.notify_all();
      changed_.wait(lock, [this] { return allowed_ > 0; });
      --allowed_;
    }
    published_ += messages.size();
    begun_ = Clock::now();
    return std::vector<PublishResult>(messages.size());
  }

  void observe(const RelayEvent& event) {
    if (event.type != RelayEventType::error) return;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = event.error;
    changed_.notify_all();
  }

  void allow(std::size_t batches) {
    const std::lock_guard lock(mutex_);
    allowed_ += batches;
    changed_.notify_all();
  }

  void wait_for(std::size_t batches) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || times_.size() >= batches; });
    if (error_) std::rethrow_exception(error_);
  }

  const std::size_t batch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t allowed_ = 0, published_ = 0;
  double between_calls_ = 0;
  std::vector<double> times_;
  std::exception_ptr error_;
  Clock::time_point begun_;
  double first_ = 0;
  std::stop_source stop_;
  OutboxRelay relay_;  ///< Must be the last member: its thread uses the others.
};

void remove_first(soci::session& sql, long long rows) {
  long long end = 0;
  sql << fmt::format("SELECT seq FROM txinbox_outbox_message ORDER BY seq LIMIT 1 OFFSET {}", rows), soci::into(end);
  sql << fmt::format("DELETE FROM txinbox_outbox_message WHERE seq < {}", end);
}

/// An outbox in a separate database.
struct Backlog {
  Backlog(const Target& target, const std::string& suffix, long long rows, int keys)
      : database(target, suffix), pool(database.pool(3)), connection(pool.acquire()) {
    fill_outbox(connection, rows, keys);
  }

  Database database;
  Pool pool;
  Connection connection;
};

}  // namespace

Json measure_outbox_snapshot(const Target& target, const OutboxOptions& options, int keys) {
  constexpr int batches = 5;        // in each round
  constexpr int first_batches = 4;  // of each relay, before the rounds
  const long long rest = static_cast<long long>(options.batch) * (batches * options.rounds + first_batches + 2);
  Backlog fresh(target, "_fresh", rest, keys);
  Backlog held(target, "_held", options.deleted + rest, keys);
  const auto reading = held.pool.acquire();
  soci::session& snapshot = reading;
  if (target.name == "mariadb") snapshot << "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
  snapshot << (target.name == "mariadb" ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ");
  rows_in(snapshot);  // the first statement takes the snapshot
  remove_first(held.connection, options.deleted);

  struct Way {
    const char* name;
    PacedRelay relay;
  };
  std::array<Way, 2> ways{Way{"fresh", {fresh.pool, options.batch}}, Way{"held", {held.pool, options.batch}}};
  Json first = Json::object();
  Json times = Json::object();
  for (Way& way : ways) {
    first[way.name] = way.relay.first();
    // On PostgreSQL, the relay learns in these batches up to which row no row is missing. It asks once in a second.
    for (int batch = 0; batch < first_batches; ++batch) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
      way.relay.run(1);
    }
  }
  Progress progress("rounds under a snapshot", options.rounds);
  for (int round = 0; round < options.rounds; ++round) {
    rotated(ways.size(), round, [&](std::size_t i) {
      for (const double time : ways.at(i).relay.run(batches)) times[ways.at(i).name].push_back(time);
    });
    progress.step();
  }
  if (rows_in(snapshot) != options.deleted + rest)
    throw std::runtime_error("the snapshot does not see what was removed");
  snapshot << "ROLLBACK";
  return {{"deleted", options.deleted},
          {"keys", keys},
          {"batch", options.batch},
          {"first_ms", first},
          {"milliseconds", times}};
}

}  // namespace txinbox::bench
