#pragma once

/// @file
/// The delivery of a message, as the message's handler sees it.

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <typeinfo>
#include <utility>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
class ConnectionLocals;
struct DeliveryAccess;
}  // namespace detail

struct Incoming;

/// One arrival of a message, as its handler sees it. The object exists for one run of the handler.
///
/// @threads only the thread of the handler.
class Delivery {
 public:
  /// `consume` creates deliveries. The test of a handler may create one, too. `message` must outlive the delivery. The
  /// other arguments are what `attempt`, `stop_token` and `index` return.
  explicit Delivery(const Message& message, int attempt = 1, std::stop_token stop = {}, std::size_t index = 0);
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  /// It is for containers. The moved-from delivery may only be destroyed.
  Delivery(Delivery&&) noexcept;
  Delivery& operator=(Delivery&&) = delete;
  ~Delivery();

  /// The message that was passed to `consume`. In a batch, the message that this run handles.
  const Message& message() const noexcept { return *message_; }

  /// The position in the batch; 0 for a single message.
  std::size_t index() const noexcept { return index_; }

  /// 1 for the first run of this `consume` call, 2 for the run after the first transient error, and so on. It counts
  /// runs within the call, not deliveries by the broker.
  int attempt() const noexcept { return attempt_; }

  /// The consumer's stop token. A long handler can check it, and throw to give the message back to the broker.
  std::stop_token stop_token() const noexcept { return stop_; }

  /// The broker's delivery, with its headers: `Message::incoming`.
  ///
  /// @errors `Error` invalid_argument if it is null: neither `run` nor an HTTP guard has called the
  ///         handler, and the caller of `consume` has not set it.
  const Incoming& incoming() const;

  /// Stores `result` with the key's row. It commits with the transaction. Every later duplicate gets it in
  /// `Result::stored`. If a handler calls this several times, the last call counts.
  ///
  /// @limits at most `max_result` bytes of the consumer's options, any bytes.
  /// @errors `Error` result_too_large if `result` is longer.
  void store(std::string result);

  /// Ends the handler with a refusal that is stored as the answer. The handler's SQL is rolled back, but the key is
  /// consumed, and `result` is stored with it. `consume` returns `consumed` with `Result::refused`. Every later
  /// duplicate gets `result` in `Result::stored`. Nothing is counted as a failure. An example is a payment that the
  /// account does not cover.
  ///
  /// If another delivery claims the key between the rollback and the new claim, the other delivery counts, and this one
  /// is its duplicate.
  ///
  /// It throws an exception that is not a `std::exception`. Do not catch it. If you do, the delivery is refused anyway
  /// when the handler returns. It costs nothing if it is not called. It is not for `LeaseConsumer`, where
  /// nothing can be rolled back: store the result and return.
  ///
  /// @limits as `store`.
  /// @errors as `store`; `Error` invalid_argument in a handler of a `LeaseConsumer`.
  [[noreturn]] void refuse(std::string result);

  /// The result that the handler passed to `store` or `refuse`. None if it called neither.
  const std::optional<std::string>& stored() const noexcept { return stored_; }

  /// Returns the handler's own object of type `T` for the connection on which it runs, for example with prepared
  /// statements.
  ///
  /// txinbox creates it as `T(connection)` when a handler asks for it on a connection for the first time, and never
  /// moves it. txinbox destroys it before the connection is closed, and after each run that failed, because a SOCI
  /// statement must not be used after it failed or after its connection was closed. A consumer on the caller's own
  /// connection keeps it only for one `consume` or `consume_batch`. If `keeps_statements` is false, txinbox destroys it
  /// when the handler returns, in its transaction.
  ///
  /// `connection` is what the handler got: the session, or the connection of a client library. If a handler reconnects
  /// its session, the objects of the session are lost.
  /// @errors what the constructor of `T` throws.
  template <class T, class Connection>
  T& per_connection(Connection&& connection) {
    std::shared_ptr<void>& local = connection_local(typeid(T));
    if (!local) local = std::make_shared<T>(std::forward<Connection>(connection));
    return *static_cast<T*>(local.get());
  }

  /// Whether a statement that a handler prepares is there in the next transaction on this connection. It is false on
  /// PostgreSQL behind a pooler such as PgBouncer in transaction mode: there, the next transaction can run on another
  /// connection of the server, on which the statement's name is unknown or means a statement of another client. It is
  /// also false on the caller's own connection to PostgreSQL, because txinbox does not know whether there is a pooler.
  bool keeps_statements() const noexcept { return keeps_statements_; }

 private:
  friend struct detail::DeliveryAccess;
  std::shared_ptr<void>& connection_local(const std::type_info&);

  const Message* message_;
  int attempt_;
  std::size_t index_;
  std::stop_token stop_;
  std::optional<std::string> stored_;
  std::size_t max_result_ = 65'535;
  bool may_refuse_ = true;
  bool keeps_statements_ = false;
  bool refused_ = false;
  detail::ConnectionLocals* locals_ = nullptr;
  std::unique_ptr<detail::ConnectionLocals> own_locals_;  ///< Used if no consumer created this delivery.
};

TXINBOX_API_END
}  // namespace txinbox
