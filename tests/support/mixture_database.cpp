#include "support/mixture_database.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "support/capabilities.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

void prepare(soci::session& sql) {
  if (!on_sqlite3()) return;
  sql << "pragma synchronous = off";
  sql << "pragma foreign_keys = on";
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
    if (round_ < mixed.rounds) behave(mixed.does, sql, delivery, consumer_);
  }

 private:
  const Mixture& mixture_;
  std::string consumer_;
  int round_ = 0;
};

bool blocks(const Result& result, OnFailure on_failure) {
  if (on_failure == OnFailure::skip) return false;
  if (result.outcome == Outcome::parked) return result.error || on_failure == OnFailure::stop_at_parked;
  return result.outcome == Outcome::failed || result.outcome == Outcome::in_progress ||
         result.outcome == Outcome::postponed;
}

/// Whether the batch ends here: at an error of the environment, or where `OnFailure` says so.
bool ends(const Mixture& mixture, const Result& result) {
  if (blocks(result, mixture.on_failure)) return true;
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
    case Way::one_by_one_on_session:
    case Way::one_by_one_counting_starts:
      return one_by_one(consumer, mixture, messages, one);
    case Way::batch:
    case Way::batch_on_session:
    case Way::batch_counting_starts:
      return in_batches(consumer, mixture, messages, one, messages.size());
    case Way::in_batches:
      return in_batches(consumer, mixture, messages, one, mixture.size);
    case Way::set:
      return in_batches(consumer, mixture, messages, set, messages.size());
    case Way::set_in_batches:
      return in_batches(consumer, mixture, messages, set, mixture.size);
    case Way::pair:
      return in_batches(consumer, mixture, messages, BatchHandlers{set, one}, messages.size());
    case Way::pair_in_batches:
      return in_batches(consumer, mixture, messages, BatchHandlers{set, one}, mixture.size);
  }
  return {};
}

/// The assignments that make a consumed row one in this state.
std::string change_to(const std::string& state) {
  if (state == "old") return "consumed_at = " + sql_time(-std::chrono::hours(48));
  if (state != "expired lease") return "state = '" + state + "'";
  return "state = 'consuming', lease_owner = 'other', lease_fence = 1, lease_expires_at = " +
         sql_time(-std::chrono::hours(1));
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

std::string to_string(Way way) {
  constexpr std::array names{"one by one",
                             "one batch",
                             "batches",
                             "one set",
                             "sets",
                             "one pair",
                             "pairs",
                             "one by one on a session",
                             "one batch on a session",
                             "one by one with count_starts",
                             "one batch with count_starts"};
  return names.at(static_cast<std::size_t>(way));
}

MixtureDatabase::MixtureDatabase() : pool_(pool(PoolOptions{.connections = 2, .on_connect = prepare})) {
  prepare(*own_);
  run("create table done (consumer varchar(64) not null, business_key varchar(64) not null, message_id varchar(64) "
      "not null, extra integer)");
  run("create index done_consumer on done (consumer, business_key)");
  run("create table one_row (id integer not null primary key)");
  run("insert into one_row values (1)");
  if (!defers_constraints()) return;
  run("create table child (id integer not null references one_row deferrable initially deferred)");
}

std::string MixtureDatabase::consume(const Mixture& mixture, Way way) {
  const std::string name = "m" + std::to_string(mixture.seed) + "-" + std::to_string(static_cast<int>(way));
  std::ostringstream seen;
  std::map<std::string, std::string> events;
  ConsumerOptions options = mixture.options;
  options.listeners = {on_event([&](const Event& event) {
    if (event.type == EventType::retry) return;  // a batch runs again as a whole
    // A batch reports these before the events of its messages, without a message id.
    const bool early = event.type == EventType::torn || event.type == EventType::lease_taken_over;
    events[(early ? "early " : "") + std::string(event.business_key)] +=
        " " + std::string(to_string(event.type)) + ":" + std::string(early ? "" : event.message_id) + ":" +
        std::string(event.type == EventType::failed ? event.error_class : "");
  })};
  options.count_starts = way == Way::one_by_one_counting_starts || way == Way::batch_counting_starts;
  const bool on_session = way == Way::one_by_one_on_session || way == Way::batch_on_session;
  if (on_session) options.recent_keys = {};
  for (const auto& [key, state] : mixture.rows) {
    (void)TxConsumer(pool_, name).consume({.business_key = key, .content = "A"}, [](soci::session&) {});
    *sql_ << "update txinbox_consumed_message set " + change_to(state) + " where consumer = '" + name +
                 "' and business_key = '" + key + "'";
  }
  {
    auto consumer = on_session ? TxConsumer(*own_, name, options) : TxConsumer(pool_, name, options);
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
             << messages[i].content << " for " << messages[i].valid_for.count() << " does "
             << static_cast<int>(mixture.messages[index].does) << "): " << described(results[i]) << "\n";
      }
    }
  }
  for (const auto& [key, types] : events) seen << "events of " << key << ":" << types << "\n";
  return seen.str() + rows_of(name, !on_session);
}

std::string MixtureDatabase::rows_of(const std::string& consumer, bool with_duplicates) {
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
  if (with_duplicates) add("txinbox_consumer", joined({"duplicates"}));
  add("done", joined({"business_key", "message_id"}));
  return seen;
}

}  // namespace txinbox::test
