#include <txinbox/handler_check.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>

#include "testing/child_run.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

/// The exception that a delivery throws after its handler has run.
struct FailureOfCheck : std::exception {
  const char* what() const noexcept override { return "check_handler makes this delivery fail"; }
};

bool is_failure_of_check(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const FailureOfCheck&) {
    return true;
  } catch (...) {
    return false;
  }
  return false;
}

[[noreturn]] void refuse_check(const std::string& text) {
  throw Error(ErrorCode::invalid_argument, "check_handler: " + text);
}

/// How a delivery ended: a result or an error.
struct Delivered {
  std::optional<Result> result;
  std::exception_ptr error;

  bool is(Outcome outcome) const { return result && result->outcome == outcome; }
  std::string text() const {
    return result ? fmt::format("the delivery ended as {}", to_string(result->outcome))
                  : "the delivery failed: " + describe_error(error);
  }
};

/// Lets two threads go on at the same time, or after a short time if the other one does not come. On SQLite it cannot
/// come, because only one transaction writes.
class Meeting {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return arrived_ >= 2; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
};

const char* const run_on_session = "run all SQL on the session that the handler gets, and in tables with transactions";
const char* const keep_nothing = "keep nothing in the handler from a run that was rolled back";

/// The parameter of a handler that takes any connection. Of a handler with `const HandlerConnection&`, the library
/// would make one that takes a session of SOCI, because a session converts to it. This part of the library must not
/// need SOCI.
template <class T>
concept AnyConnection = std::same_as<T, detail::HandlerConnection>;

class HandlerChecker {
 public:
  explicit HandlerChecker(const HandlerCheck& check) : check_(check) {}

  std::vector<HandlerDefect> run() {
    if (!deliver_plainly()) return defects_;
    deliver_twice();
    fail_after_handler();
    run_twice();
    kill_before_commit();
    deliver_at_the_same_time();
    fail_in_batch();
    return defects_;
  }

 private:
  /// The next message. A delivery of a check must not end its validity.
  Message next() {
    Message message = check_.message(++number_);
    message.valid_for = {};
    return message;
  }

  /// The options without those that would change how a delivery of the check ends.
  ConsumerOptions options(bool failure_is_transient = false) const {
    ConsumerOptions options = check_.options;
    options.retry = {};
    options.claim_wait.reset();
    options.max_attempts = 0;
    options.count_starts = false;
    options.is_transient = [failure_is_transient, own = options.is_transient](const std::exception_ptr& error) {
      return is_failure_of_check(error) ? failure_is_transient : own && own(error);
    };
    return options;
  }

  std::string effects(Pool& pool, const Message& message) const {
    const Connection connection = pool.acquire();
    return check_.effects(connection, message);
  }

  static Delivered deliver(TxConsumer& consumer, const Message& message, const Handler& handler) {
    try {
      return {.result = consumer.consume(message, handler), .error = nullptr};
    } catch (...) {
      return {.result = std::nullopt, .error = std::current_exception()};
    }
  }

  /// Delivers a message for the first time.
  Delivered deliver_new(TxConsumer& consumer, const Message& message, const Handler& handler) const {
    Delivered delivered = deliver(consumer, message, handler);
    if (delivered.is(Outcome::already_consumed)) {
      refuse_check(
          fmt::format("the key of message {} was consumed before; return new keys, or empty the database", number_));
    }
    return delivered;
  }

  void report(std::string promise, std::string found, std::string remedy) {
    defects_.push_back({std::move(promise), std::move(found), std::move(remedy)});
  }

  void expect_effects(Pool& pool, const Message& message, const std::string& wanted, const std::string& promise,
                      const std::string& remedy) {
    const std::string text = effects(pool, message);
    if (text != wanted) report(promise, fmt::format("the effects are \"{}\" and not \"{}\"", text, wanted), remedy);
  }

  /// Reports a delivery that was not consumed, or whose effects are not those of one run.
  void expect_consumed(Pool& pool, const Message& message, const Delivered& delivered, const std::string& promise,
                       const std::string& remedy) {
    if (!delivered.is(Outcome::consumed)) {
      report(promise, delivered.text(), remedy);
    } else {
      expect_effects(pool, message, after_, promise, remedy);
    }
  }

  /// Learns what the effects are. Returns false if the other checks make no sense.
  bool deliver_plainly() {
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options());
    first_ = next();
    before_ = effects(pool, first_);
    const Delivered delivered = deliver_new(consumer, first_, check_.handler);
    if (delivered.error) {
      try {
        std::rethrow_exception(delivered.error);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::transaction_lost) throw;
        report("the handler leaves the transaction to txinbox", error.what(),
               "remove what ends the transaction: BEGIN, COMMIT, ROLLBACK, a soci::transaction, or DDL on MariaDB and "
               "MySQL");
        return false;
      }
    }
    if (!delivered.is(Outcome::consumed) || delivered.result->refused) {
      refuse_check(delivered.result->refused ? "the handler refuses message 1; return messages that it accepts"
                                             : delivered.text() + "; return messages that the handler accepts");
    }
    after_ = effects(pool, first_);
    if (after_ == before_) {
      refuse_check(
          "`effects` has the same text before and after the handler, so no check would find anything; read what the "
          "handler changes");
    }
    return true;
  }

  void deliver_twice() {
    const std::string promise = "the second delivery of a message has no effects";
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options());
    const Delivered delivered = deliver(consumer, first_, check_.handler);
    if (!delivered.is(Outcome::already_consumed)) report(promise, delivered.text(), run_on_session);
    expect_effects(pool, first_, after_, promise, run_on_session);
  }

  /// Runs the handler, and then fails.
  Handler failing() const {
    return [this](const AnyConnection auto& connection, Delivery& delivery) {
      check_.handler(connection, delivery);
      throw FailureOfCheck();
    };
  }

  void fail_after_handler() {
    const std::string promise = "a rollback leaves no effects";
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options());
    const Message message = next();
    const Delivered failed = deliver_new(consumer, message, failing());
    if (!is_failure_of_check(failed.error)) {
      report(promise, failed.text(), "the handler must work for each message");
      return;
    }
    const std::string left = effects(pool, message);
    if (left != before_) {
      report(promise, fmt::format("the effects are \"{}\" and not \"{}\"", left, before_), run_on_session);
      return;
    }
    const Delivered again = deliver(consumer, message, check_.handler);
    expect_consumed(pool, message, again, "a delivery after a rollback has the same effects", keep_nothing);
  }

  void run_twice() {
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options(true));
    const Message message = next();
    int runs = 0;
    const Delivered delivered =
        deliver_new(consumer, message, [&](const AnyConnection auto& connection, Delivery& delivery) {
          check_.handler(connection, delivery);
          if (++runs == 1) throw FailureOfCheck();
        });
    expect_consumed(pool, message, delivered, "a handler that runs twice in one `consume` has the effects of one run",
                    keep_nothing);
  }

  void kill_before_commit() {
    const Message message = next();
    // No pool is open here, because SQLite does not allow fork() with an open connection.
    const std::string error = detail::run_in_child([&](const std::function<void()>& end_process) {
      Pool pool = check_.open_pool();
      TxConsumer consumer(pool, check_.consumer, options());
      const Result result = consumer.consume(message, [&](const AnyConnection auto& connection, Delivery& delivery) {
        check_.handler(connection, delivery);
        end_process();
      });
      return fmt::format("the delivery ended as {}, and the handler did not run", to_string(result.outcome));
    });
    if (!error.empty()) {
      report("the handler also works in a process that was forked", error,
             "let `open_pool` open a new pool, and let the handler use only its session");
      return;
    }
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options());
    // The database may still be rolling back. The claim of this delivery waits for that.
    const Delivered delivered = deliver_new(consumer, message, check_.handler);
    expect_consumed(pool, message, delivered, "a process that is killed before the commit leaves no effects",
                    run_on_session);
  }

  void deliver_at_the_same_time() {
    const std::string promise = "deliveries at the same time have the effects of one for each message";
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options());
    const std::array<Message, 2> messages{next(), next()};
    Meeting meeting;
    const Handler handler = [&](const AnyConnection auto& connection, Delivery& delivery) {
      if (delivery.attempt() == 1) meeting.wait();
      check_.handler(connection, delivery);
    };
    std::array<Delivered, 2> delivered;
    std::jthread other([&] { delivered[1] = deliver(consumer, messages[1], handler); });
    delivered[0] = deliver(consumer, messages[0], handler);
    other.join();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      expect_consumed(pool, messages[i], delivered[i], promise, "the handler must be safe if several threads call it");
    }
  }

  void fail_in_batch() {
    const std::string promise = "in a batch, a message that fails takes nothing from the next one";
    Pool pool = check_.open_pool();
    TxConsumer consumer(pool, check_.consumer, options());
    const std::array<Message, 2> messages{next(), next()};
    const Handler handler = [&](const AnyConnection auto& connection, Delivery& delivery) {
      check_.handler(connection, delivery);
      if (delivery.message().business_key == messages[0].business_key) throw FailureOfCheck();
    };
    const auto results = consumer.consume_batch(messages, handler, OnFailure::skip);
    if (!is_failure_of_check(results[0].error)) {
      report(promise, Delivered{.result = results[0], .error = nullptr}.text(),
             "release or roll back each savepoint that the handler sets");
      return;
    }
    expect_effects(pool, messages[0], before_, "a message that fails in a batch has no effects", run_on_session);
    if (results[1].outcome == Outcome::failed) {
      report(promise, "the next message failed: " + describe_error(results[1].error),
             "release or roll back each savepoint that the handler sets");
      return;
    }
    expect_consumed(pool, messages[1], {.result = results[1], .error = nullptr}, promise, keep_nothing);
  }

  const HandlerCheck& check_;
  int number_ = 0;
  Message first_;
  std::string before_;
  std::string after_;
  std::vector<HandlerDefect> defects_;
};

}  // namespace

std::vector<HandlerDefect> check_handler(const HandlerCheck& check) {
  if (!check.open_pool || !check.handler || !check.message || !check.effects) {
    refuse_check("the members open_pool, handler, message and effects must not be empty");
  }
  return HandlerChecker(check).run();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
