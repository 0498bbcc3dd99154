#pragma once

/// @file
/// A check for the tests of a service: whether its handler takes effect exactly once.

#include <functional>
#include <string>
#include <vector>

#include <txinbox/consumer_options.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/message.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_API_BEGIN

/// The arguments of `check_handler`.
struct HandlerCheck {
  /// Opens a pool of at least two connections on a database for tests, which has txinbox's tables and those of the
  /// handler. Each call must open a new pool, because a child process calls it, too.
  std::function<Pool()> open_pool;

  Handler handler;  ///< The handler that is checked.

  /// Returns the message with this number, from 1 on. Each number is another business key, which no earlier check has
  /// used. All messages must have the same effects.
  std::function<Message(int number)> message;

  /// Reads the effects of a message from the tables of the service: "1 order, 3 items". Before the message is consumed,
  /// the text must be another one. Each message of `message` must have the same text.
  std::function<std::string(soci::session&, const Message&)> effects;

  std::string consumer = "handler_check";  ///< The consumer's name.

  /// The options with which the service consumes. The check leaves out `retry`, `claim_wait`, `max_attempts` and
  /// `count_starts`, because its deliveries fail on purpose. It also leaves out `Message::valid_for`.
  ConsumerOptions options = {};
};

/// A promise of a handler that does not hold.
struct HandlerDefect {
  std::string promise;  ///< The promise: "a rollback leaves no effects".
  std::string found;    ///< The fact that shows it.
  std::string remedy;   ///< The change that the handler needs.
};

/// Checks that a handler takes effect exactly once, by deliveries as a broker makes them after errors:
///
/// - A message is delivered twice.
/// - A delivery fails after the handler has run, so that txinbox rolls back. The message is delivered again.
/// - The handler runs twice in one `consume`, as after a deadlock.
/// - The process is killed between the handler and the commit. The message is delivered again.
/// - Two threads deliver two messages at the same time.
/// - In a batch, the message before it fails.
///
/// So it finds a handler that commits or rolls back itself, one whose SQL runs on another connection or in a table
/// without transactions, and one that keeps something from a run that was rolled back. It does not find effects that
/// `effects` does not read, such as a call of another service. It changes the database: use one for tests.
///
/// @return the defects; empty if each promise holds.
///
/// @blocking as some ten calls of `consume`. The child process ends after a minute at the latest.
/// @limits   it uses fork(). The child process opens a pool, consumes, and ends by _exit. So no other thread of the
///           program should be inside a client library, or hold a lock that the handler needs. On SQLite, the program
///           must have no other connection to the file: SQLite does not allow fork() with one.
/// @errors
/// - `Error` invalid_argument if a member is empty, if the handler does not accept message 1, if a key was consumed
///   before, or if `effects` has the same text before and after the handler.
/// - What the handler throws for message 1. Later, an error of the handler is a defect.
/// - The errors of the other functions, and of the database.
///
/// @threads  one.
std::vector<HandlerDefect> check_handler(const HandlerCheck& check);

TXINBOX_API_END
}  // namespace txinbox
