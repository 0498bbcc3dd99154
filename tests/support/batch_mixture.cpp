#include "support/batch_mixture.hpp"

#include <array>
#include <functional>
#include <map>
#include <new>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

struct Declared : std::runtime_error {
  Declared() : std::runtime_error("declared transient") {}
};

constexpr std::size_t max_result = 16;

bool is_declared(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Declared&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Draws the parts of a mixture.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  Does kind() {
    constexpr std::array usual{Does::throws,    Does::throws, Does::breaks_constraint, Does::rejects, Does::refuses,
                               Does::postpones, Does::stores, Does::needs_first};
    if (one_in(2)) return Does::nothing;
    if (!one_in(4)) return usual.at(below(usual.size()));
    for (;;) {
      const Does does = static_cast<Does>(below(static_cast<std::size_t>(Does::needs_first) + 1));
      const bool on_servers = does == Does::conflicts_in_database || does == Does::environment_in_sql;
      if (on_servers ? !on_sqlite3() : does != Does::fails_at_commit || !on_mysql()) return does;
    }
  }

 private:
  std::mt19937_64 random_;
};

void raise(soci::session& sql, const std::string& postgresql, const std::string& mysql) {
  if (on_postgresql()) {
    sql << "do $$ begin raise exception 'raised' using errcode = '" + postgresql + "'; end $$";
  } else {
    sql << "signal sqlstate 'HY000' set mysql_errno = " + mysql;
  }
}

/// The code that handles one delivery of a mixture.
class Work {
 public:
  Work(const Mixture& mixture, std::string consumer) : mixture_(mixture), consumer_(std::move(consumer)) {}

  void begin_round(int round) { round_ = round; }

  void operator()(soci::session& sql, Delivery& delivery) const {
    const Message& message = delivery.message();
    const std::size_t index = std::stoul(message.message_id);
    sql << "insert into done (consumer, business_key, message_id) values (:c, :k, :m)", soci::use(consumer_),
        soci::use(message.business_key), soci::use(message.message_id);
    const MixedMessage& mixed = mixture_.messages.at(index);
    if (round_ < mixed.rounds) behave(mixed.does, sql, delivery);
  }

 private:
  void behave(Does does, soci::session& sql, Delivery& delivery) const {
    switch (does) {
      case Does::nothing:
        break;
      case Does::stores:
        delivery.store("did " + delivery.message().message_id);
        break;
      case Does::throws:
        throw std::runtime_error("no stock");
      case Does::breaks_constraint:
        sql << "insert into one_row values (1)";
        break;
      case Does::fails_at_commit:
        sql << "insert into child values (2)";
        break;
      case Does::stores_too_much:
        delivery.store(std::string(max_result + 1, 'x'));
        break;
      case Does::rejects:
        throw Error(ErrorCode::rejected, "not valid");
      case Does::refuses:
        delivery.refuse("no " + delivery.message().message_id);
      case Does::postpones:
        throw RetryLater(std::chrono::seconds(30));
      case Does::declared:
        throw Declared();
      case Does::conflicts_in_database:
        raise(sql, "40001", "1205");
        break;
      case Does::no_memory:
        throw std::bad_alloc();
      case Does::environment_in_sql:
        raise(sql, "53100", "1114");
        break;
      case Does::needs_first: {
        int found = 0;
        sql << "select count(*) from done where consumer = :c and business_key = 'k0'", soci::use(consumer_),
            soci::into(found);
        if (found == 0) throw std::logic_error("the first key has no effect yet");
        break;
      }
    }
  }

  const Mixture& mixture_;
  std::string consumer_;
  int round_ = 0;
};

bool blocks(const Result& result) {
  return result.outcome == Outcome::failed || result.outcome == Outcome::in_progress ||
         result.outcome == Outcome::postponed || (result.outcome == Outcome::parked && result.error);
}

/// Whether the batch ends here: at an error of the environment, or where `OnFailure::stop` says so.
bool ends(const Mixture& mixture, const Result& result) {
  if (mixture.on_failure == OnFailure::stop && blocks(result)) return true;
  const std::string error = error_class(result.error);
  return error == "std::bad_alloc" || error == "postgresql 53100" || error == "mysql 1114";
}

std::vector<Result> one_by_one(TxConsumer& consumer, const Mixture& mixture, std::span<const Message> messages,
                               const Handler& handler) {
  std::vector<Result> results;
  for (const Message& message : messages) {
    if (!results.empty() && (results.back().outcome == Outcome::not_run || ends(mixture, results.back()))) {
      results.push_back({.outcome = Outcome::not_run});
      continue;
    }
    try {
      results.push_back(consumer.consume(message, handler));
    } catch (...) {
      results.push_back({.outcome = Outcome::failed, .error = std::current_exception()});
    }
  }
  return results;
}

template <class AnyHandler>
std::vector<Result> in_batches(TxConsumer& consumer, const Mixture& mixture, std::span<const Message> messages,
                               const AnyHandler& handler, std::size_t size) {
  std::vector<Result> results;
  while (!messages.empty()) {
    const auto batch = messages.first(std::min(size, messages.size()));
    for (Result& each : consumer.consume_batch(batch, handler, mixture.on_failure)) results.push_back(std::move(each));
    messages = messages.subspan(batch.size());
    bool over = results.back().outcome == Outcome::not_run;
    over = over || ends(mixture, results.back());
    if (over) break;
  }
  for (std::size_t i = messages.size(); i > 0; --i) results.push_back({.outcome = Outcome::not_run});
  return results;
}

std::vector<Result> consume_in(Way way, TxConsumer& consumer, const Mixture& mixture, std::span<const Message> messages,
                               const Work& work) {
  const Handler one = work;
  const BatchHandler set = [&](soci::session& sql, std::span<Delivery> deliveries) {
    for (Delivery& each : deliveries) work(sql, each);
  };
  switch (way) {
    case Way::one_by_one:
      return one_by_one(consumer, mixture, messages, one);
    case Way::batch:
    case Way::counting_starts:
      return in_batches(consumer, mixture, messages, one, messages.size());
    case Way::in_batches:
      return in_batches(consumer, mixture, messages, one, mixture.size);
    case Way::set:
      return in_batches(consumer, mixture, messages, set, messages.size());
    case Way::set_in_batches:
      return in_batches(consumer, mixture, messages, set, mixture.size);
    case Way::pair:
      return in_batches(consumer, mixture, messages, BatchHandlerPair{set, one}, messages.size());
    case Way::pair_in_batches:
      return in_batches(consumer, mixture, messages, BatchHandlerPair{set, one}, mixture.size);
  }
  return {};
}

std::string described(const Result& result) {
  std::string text(to_string(result.outcome));
  if (result.error) text += " error=" + error_class(result.error);
  if (result.stored) text += " stored='" + *result.stored + "'";
  if (result.refused) text += " refused";
  if (result.retry_after.count() != 0) text += " later=" + std::to_string(result.retry_after.count());
  return text;
}

}  // namespace

Mixture::Mixture(std::uint64_t seed_) : seed(seed_) {
  Dice dice(seed);
  on_failure = dice.one_of({OnFailure::stop, OnFailure::skip, OnFailure::skip});
  rounds = dice.one_of({1, 2, 3});
  size = 2 + dice.below(4);
  options.retry = {.max_attempts = dice.one_of({1, 2, 3}), .initial_backoff = std::chrono::milliseconds(0)};
  options.max_attempts = dice.one_of({0, 1, 1, 2, 3});
  options.is_transient = is_declared;
  options.max_result = max_result;
  options.max_conflicts = dice.one_of<std::size_t>({0, 1, 8});
  options.keep_error_text = dice.one_in(2);
  if (dice.one_in(3)) options.recent_keys.capacity = 10;
  const std::size_t keys = 1 + dice.below(5);
  std::vector<Does> habits;
  for (std::size_t i = 0; i < keys; ++i) habits.push_back(dice.kind());
  for (std::size_t i = 1; i < keys; ++i) {
    const char* const state = dice.one_of({"parked", "torn", "discarded", "consuming", "consumed", "surprise"});
    if (dice.one_in(12)) rows.emplace_back("k" + std::to_string(i), state);
  }
  const std::size_t count = 1 + dice.below(9);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t key = dice.below(keys);
    MixedMessage& mixed = messages.emplace_back();
    mixed.message = {.business_key = dice.one_in(25) ? std::string() : "k" + std::to_string(key),
                     .message_id = std::to_string(i),
                     .content = dice.one_of({"", "A", "A", "A", "B", "C"}),
                     .payload = "payload " + std::to_string(i)};
    mixed.does = dice.one_in(3) ? dice.kind() : habits[key];
    mixed.rounds = dice.one_of({1, 2, 9, 9});
  }
}

bool Mixture::repeats(std::size_t index, int round) const {
  std::mt19937_64 random(seed * 1000 + index * 10 + static_cast<std::size_t>(round));
  return random() % 4 == 0;
}

std::string to_string(Way way) {
  constexpr std::array names{"one by one", "one batch", "batches", "one set",
                             "sets",       "one pair",  "pairs",   "one batch that counts starts"};
  return names.at(static_cast<std::size_t>(way));
}

MixtureDatabase::MixtureDatabase()
    : pool_(pool(PoolOptions{.connections = 2, .on_connect = [](soci::session& sql) {
                               if (!on_sqlite3()) return;
                               sql << "pragma synchronous = off";
                               sql << "pragma foreign_keys = on";
                             }})) {
  run("create table done (consumer varchar(64) not null, business_key varchar(64) not null, message_id varchar(64) "
      "not null, extra integer)");
  run("create index done_consumer on done (consumer, business_key)");
  run("create table one_row (id integer not null primary key)");
  run("insert into one_row values (1)");
  if (on_mysql()) return;
  run("create table child (id integer not null references one_row deferrable initially deferred)");
}

std::string MixtureDatabase::consume(const Mixture& mixture, Way way) {
  const std::string name = "m" + std::to_string(mixture.seed) + "-" + std::to_string(static_cast<int>(way));
  std::ostringstream seen;
  std::map<std::string, std::string> events;
  TxConsumerOptions options = mixture.options;
  options.observer = [&](const Event& event) {
    if (event.type == EventType::retry) return;  // a batch runs again as a whole
    std::string& of_key = events[std::string(event.business_key)];
    of_key += " " + std::string(to_string(event.type)) + ":" + std::string(event.message_id) + ":" +
              std::string(event.type == EventType::failed ? event.error_class : "");
  };
  options.count_starts = way == Way::counting_starts;
  for (const auto& [key, state] : mixture.rows) {
    (void)TxConsumer(pool_, name).consume({.business_key = key, .content = "A"}, [](soci::session&) {});
    *sql_ << "update txinbox_consumed_message set state = '" + state + "' where consumer = '" + name +
                 "' and business_key = '" + key + "'";
  }
  {
    TxConsumer consumer(pool_, name, options);
    Work work(mixture, name);
    std::vector<bool> over(mixture.messages.size());
    for (int round = 0; round < mixture.rounds; ++round) {
      work.begin_round(round);
      std::vector<Message> messages;
      for (std::size_t i = 0; i < over.size(); ++i) {
        if (!over[i] || mixture.repeats(i, round)) messages.push_back(mixture.messages[i].message);
      }
      if (messages.empty()) continue;
      const auto results = consume_in(way, consumer, mixture, messages, work);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const std::size_t index = std::stoul(messages[i].message_id);
        over[index] = over[index] || action_for(results[i]) != Action::redeliver;
        seen << "round " << round << " message " << index << " (" << messages[i].business_key << " "
             << messages[i].content << " does " << static_cast<int>(mixture.messages[index].does)
             << "): " << described(results[i]) << "\n";
      }
    }
  }
  for (const auto& [key, types] : events) seen << "events of " << key << ":" << types << "\n";
  return seen.str() + rows_of(name);
}

std::string MixtureDatabase::rows_of(const std::string& consumer) {
  std::string seen;
  const auto add = [&](const std::string& table, const std::string& columns) {
    const soci::rowset<std::string> rows =
        (sql_->prepare << "select " + columns + " from " + table + " where consumer = '" + consumer + "' order by 1");
    for (const std::string& row : rows) seen += table + ": " + row + "\n";
  };
  const auto joined = [](std::initializer_list<const char*> columns) {
    std::string sql;
    for (const std::string column : columns) {
      const std::string text = on_mysql() ? "cast(" + column + " as char)" : "cast(" + column + " as text)";
      const std::string value = "coalesce(" + text + ", '-')";
      if (on_mysql()) {
        sql += sql.empty() ? "concat(" + value : ", ' ', " + value;
      } else {
        sql += (sql.empty() ? "" : " || ' ' || ") + value;
      }
    }
    return on_mysql() ? sql + ")" : sql;
  };
  const char* const result = on_postgresql() ? "encode(result, 'hex')" : "hex(result)";
  const char* const hash = on_postgresql() ? "encode(content_hash, 'hex')" : "hex(content_hash)";
  const char* const payload = on_postgresql() ? "encode(payload, 'hex')" : "hex(payload)";
  add("txinbox_consumed_message", joined({"business_key", "message_id", "state", hash, result}));
  add("txinbox_failed_message",
      joined({"business_key", "message_id", "attempts", "first_error", "last_error", "error_text", payload}));
  add("txinbox_conflicting_message",
      joined({"business_key", "message_id", "original_message_id", "reason", "deliveries", hash}));
  add("txinbox_consumer", joined({"duplicates"}));
  add("done", joined({"business_key", "message_id"}));
  return seen;
}

}  // namespace txinbox::test
