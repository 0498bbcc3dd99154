#pragma once

/// @file
/// Messages that are published if, and only if, a transaction commits.

#include <map>
#include <span>
#include <string>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// A message that a service publishes.
///
/// @limits texts are valid UTF-8 without NUL.
struct OutgoingMessage {
  /// The destination of the message, 1 to 255 bytes: a topic of Kafka, a routing key of RabbitMQ. Column
  /// `aggregatetype`.
  std::string topic;

  /// The key, 0 to 255 bytes. Messages of one key are published in the order of their insertion. Messages with an empty
  /// key have no order. Column `aggregateid`.
  std::string key = {};

  /// The kind of message, 0 to 255 bytes, such as "OrderBooked". Column `type`.
  std::string type = {};

  /// The content: at most 4 MiB, any bytes.
  std::string payload = {};

  /// Further headers, at most 64 KiB as JSON. Column `headers`: a JSON object of strings. A header with the name of one
  /// that the publisher writes itself, such as `id`, gets `header:` before its name, or the message is rejected.
  std::map<std::string, std::string> headers = {};

  /// The message id, a UUID. A receiver recognizes by it that a message comes a second time. If it is empty,
  /// `Outbox::add` chooses an id.
  std::string id = {};
};

/// The outbox: a table in the service's own database. `add` inserts messages into it, in the caller's transaction. An
/// `OutboxRelay` publishes them after the commit. Debezium can read the table, too (docs/guides/outbox.md).
class Outbox {
 public:
  /// Adds a message to the outbox, and returns its id. The row commits with the transaction, or not at all.
  ///
  /// If `OutgoingMessage::id` is empty, `add` chooses the id. It derives the id if `connection` is the connection of a
  /// running handler of a `TxConsumer`, or of a `Transaction` with a claim. A derived id is made from the database, the
  /// consumer, the business key, and the number of messages that this run has added before. So a handler that runs
  /// again, for example after `forget`, adds the same ids. If a row with a derived id is still in the outbox, the new
  /// message replaces that row, and counts as never tried. It comes after the messages of its key that are in the
  /// outbox. With `Message::valid_for`, in a `BatchHandler`, and outside of a handler, the id is random.
  ///
  /// @transaction the one that is open on the connection. If no transaction is open, the row is committed at once.
  /// @blocking    one round trip, and one more for the first derived id on a connection. If two transactions add the
  ///              same id, the second waits for the first.
  /// @limits      those of `OutgoingMessage`.
  /// @errors      after a database error, the transaction must be rolled back.
  /// - `Error` invalid_message for a message that breaks the limits, before a statement is sent. If a handler lets this
  ///   error through, the delivery counts as a failed attempt, and `action_for` says `dead_letter`.
  /// - `Error` schema_mismatch on PostgreSQL if the sequence of the table is behind its rows, and on every database if
  ///   `txinbox_outbox_database` lacks its row. The message is not the cause: nothing counts as failed, and
  ///   `action_for` says `stop`. `txinbox doctor` says how to mend it.
  /// - A database error as it was. If the outbox has a row with the id that the caller gave, this is such an error,
  ///   too.
  ///
  /// @threads     only the connection's thread.
  static std::string add(ConnectionRef connection, const OutgoingMessage& message);

  /// Adds several messages in their order, with few statements, and returns their ids. The rest is the same as for one
  /// message.
  static std::vector<std::string> add(ConnectionRef connection, std::span<const OutgoingMessage> messages);
};

TXINBOX_API_END
}  // namespace txinbox
