#include <txinbox/handler_check.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

/// What a delivery throws after its handler has run.
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

/// The status of a child process whose handler has run.
constexpr int handler_has_run = 0;
constexpr int handler_has_not_run = 1;

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
  Message next() { return check_.message(++number_); }

  /// No delivery of a check may park its message.
  ConsumerOptions options() const {
    ConsumerOptions options = check_.options;
    options.max_attempts = 0;
    options.count_starts = false;
    return options;
  }

  TxConsumer consumer(Pool& pool) const { return {pool, check_.consumer, options()}; }

  std::string effects(Pool& pool, const Message& message) const {
    const Connection connection = pool.acquire();
    return check_.effects(connection, message);
  }

  void report(std::string promise, std::string found, std::string remedy) {
    defects_.push_back({std::move(promise), std::move(found), std::move(remedy)});
  }

  void expect(const std::string& promise, const std::string& text, const std::string& wanted,
              const std::string& remedy) {
    if (text != wanted) report(promise, fmt::format("the effects are \"{}\" and not \"{}\"", text, wanted), remedy);
  }

  /// Delivers a message, and reports it if that ends otherwise. The promise is what the outcome belongs to.
  void deliver(TxConsumer& consumer, const Message& message, Outcome wanted, const std::string& promise) {
    try {
      const Result result = consumer.consume(message, check_.handler);
      if (result.outcome == wanted) return;
      report(promise,
             fmt::format("the delivery ended as {} and not as {}", to_string(result.outcome), to_string(wanted)),
             "look at what the earlier delivery of the message has left");
    } catch (const std::exception&) {
      report(promise, fmt::format("the delivery failed: {}", describe_error(std::current_exception())),
             "the handler must run again after a delivery that was rolled back");
    }
  }

  /// Learns what the effects are. Returns false if the other checks make no sense.
  bool deliver_plainly() {
    Pool pool = check_.open_pool();
    TxConsumer consumer = this->consumer(pool);
    first_ = next();
    before_ = effects(pool, first_);
    try {
      const Result result = consumer.consume(first_, check_.handler);
      if (result.outcome == Outcome::already_consumed) {
        throw Error(ErrorCode::invalid_argument,
                    "check_handler: the key of message 1 was consumed before; return new keys, or empty the database");
      }
      if (result.outcome != Outcome::consumed) {
        report("a message is consumed", fmt::format("its delivery ended as {}", to_string(result.outcome)),
               "give check_handler messages that the handler accepts");
        return false;
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::transaction_lost) throw;
      report(
          "the handler leaves the transaction to txinbox", error.what(),
          "remove what ends the transaction: BEGIN, COMMIT, ROLLBACK, a soci::transaction, or DDL on MariaDB or MySQL");
      return false;
    }
    after_ = effects(pool, first_);
    if (after_ == before_) {
      throw Error(ErrorCode::invalid_argument,
                  "check_handler: `effects` has the same text before and after the handler, so no check would find "
                  "anything; read what the handler changes");
    }
    return true;
  }

  void deliver_twice() {
    const std::string promise = "the second delivery of a message has no effects";
    Pool pool = check_.open_pool();
    TxConsumer consumer = this->consumer(pool);
    deliver(consumer, first_, Outcome::already_consumed, promise);
    expect(promise, effects(pool, first_), after_, "run all SQL on the session that the handler gets");
  }

  void fail_after_handler() {
    const std::string promise = "a rollback leaves no effects";
    Pool pool = check_.open_pool();
    TxConsumer consumer = this->consumer(pool);
    const Message message = next();
    try {
      (void)consumer.consume(message, [this](const detail::HandlerConnection& connection, Delivery& delivery) {
        check_.handler(connection, delivery);
        throw FailureOfCheck();
      });
    } catch (const FailureOfCheck&) {  // as it should be: nothing was consumed
    }
    const std::string left = effects(pool, message);
    if (left != before_) {
      expect(promise, left, before_,
             "run all SQL on the session that the handler gets, and in tables with transactions (InnoDB)");
      return;
    }
    const std::string again = "a delivery after a rollback has the same effects";
    deliver(consumer, message, Outcome::consumed, again);
    expect(again, effects(pool, message), after_, "keep nothing in the handler from a run that was rolled back");
  }

  void run_twice() {
    const std::string promise = "a handler that runs twice in one `consume` has the effects of one run";
    Pool pool = check_.open_pool();
    ConsumerOptions options = this->options();
    options.is_transient = [own = options.is_transient](const std::exception_ptr& error) {
      return is_failure_of_check(error) || (own && own(error));
    };
    TxConsumer consumer(pool, check_.consumer, options);
    const Message message = next();
    int runs = 0;
    try {
      (void)consumer.consume(message, [&](const detail::HandlerConnection& connection, Delivery& delivery) {
        check_.handler(connection, delivery);
        if (++runs == 1) throw FailureOfCheck();
      });
    } catch (const std::exception&) {
      report(promise, fmt::format("the delivery failed: {}", describe_error(std::current_exception())),
             "the handler must run again after a run that was rolled back");
      return;
    }
    expect(promise, effects(pool, message), after_, "keep nothing in the handler from a run that was rolled back");
  }

  void kill_before_commit() {
    const std::string promise = "a process that is killed before the commit leaves no effects";
    const Message message = next();
    const int status = run_in_child(message);
    Pool pool = check_.open_pool();
    if (status != handler_has_run) {
      report(promise, "the handler failed in a new process",
             "look at what the handler needs of the process it runs in");
      return;
    }
    TxConsumer consumer = this->consumer(pool);
    // The database may still be rolling back. The claim of this delivery waits for that.
    deliver(consumer, message, Outcome::consumed, promise);
    expect(promise, effects(pool, message), after_, "run all SQL on the session that the handler gets");
  }

  /// Runs the handler in a process that ends before the commit.
  int run_in_child(const Message& message) {
    const pid_t child = ::fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "check_handler: fork");
    if (child == 0) {
      try {
        Pool pool = check_.open_pool();
        TxConsumer consumer = this->consumer(pool);
        (void)consumer.consume(message, [this](const detail::HandlerConnection& connection, Delivery& delivery) {
          check_.handler(connection, delivery);
          ::_exit(handler_has_run);
        });
      } catch (...) {  // the parent reports it
      }
      ::_exit(handler_has_not_run);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "check_handler: waitpid");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : handler_has_not_run;
  }

  void deliver_at_the_same_time() {
    const std::string promise = "two deliveries at the same time have the effects of one";
    Pool pool = check_.open_pool();
    TxConsumer consumer = this->consumer(pool);
    const Message message = next();
    std::array<std::exception_ptr, 2> errors;
    std::array<Outcome, 2> outcomes{};
    const auto deliver_once = [&](std::size_t i) {
      try {
        outcomes[i] = consumer.consume(message, check_.handler).outcome;
      } catch (...) {
        errors[i] = std::current_exception();
      }
    };
    std::jthread other(deliver_once, 1);
    deliver_once(0);
    other.join();
    for (const std::exception_ptr& error : errors) {
      if (!error) continue;
      report(promise, fmt::format("a delivery failed: {}", describe_error(error)),
             "the handler must be safe if several threads call it");
      return;
    }
    expect(promise, effects(pool, message), after_, "run all SQL on the session that the handler gets");
  }

  void fail_in_batch() {
    const std::string promise = "in a batch, a message that fails takes nothing from the next one";
    Pool pool = check_.open_pool();
    TxConsumer consumer = this->consumer(pool);
    const std::array<Message, 2> messages{next(), next()};
    const auto results = consumer.consume_batch(
        messages,
        [&](const detail::HandlerConnection& connection, Delivery& delivery) {
          check_.handler(connection, delivery);
          if (delivery.message().business_key == messages[0].business_key) throw FailureOfCheck();
        },
        OnFailure::skip);
    if (results[1].outcome != Outcome::consumed) {
      report(promise,
             fmt::format("the next message ended as {} {}", to_string(results[1].outcome),
                         describe_error(results[1].error)),
             "release or roll back each savepoint that the handler sets");
      return;
    }
    expect("a message that fails in a batch has no effects", effects(pool, messages[0]), before_,
           "run all SQL on the session that the handler gets");
    expect(promise, effects(pool, messages[1]), after_, "keep nothing in the handler from a run that was rolled back");
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
    throw Error(ErrorCode::invalid_argument,
                "check_handler: the members open_pool, handler, message and effects must not be empty");
  }
  return HandlerChecker(check).run();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
