#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <typeinfo>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

namespace detail {
class ConnectionLocals;
struct DeliveryAccess;
}  // namespace detail

/// One arrival of a message, as its handler sees it. Lives for one run of the handler.
///
/// Threads: for the handler's thread only.
class Delivery {
 public:
  /// `consume` makes these; a test of a handler may too. `message` must outlive the delivery.
  explicit Delivery(const Message& message, int attempt = 1, std::stop_token stop = {}, std::size_t index = 0);
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  ~Delivery();

  const Message& message() const noexcept { return *message_; }

  /// The position in the batch; 0 for a single message.
  std::size_t index() const noexcept { return index_; }

  /// 1 for the first run of this `consume` call, 2 for the run after the first transient error, and
  /// so on. It counts runs within the call, not deliveries by the broker.
  int attempt() const noexcept { return attempt_; }

  /// The consumer's stop token: a long handler may look at it and throw to give the message back.
  std::stop_token stop_token() const noexcept { return stop_; }

  /// Keeps `result` with the row: it commits with the transaction, and every later duplicate gets it
  /// in `Result::stored`. The last call counts.
  ///
  /// Limits: at most 65,535 bytes, any bytes.
  /// Errors: `Error` invalid_key if longer.
  void store(std::string result);

  /// What `store` was given, if it was called.
  const std::optional<std::string>& stored() const noexcept { return stored_; }

  /// The handler's own `T` for the connection that it runs on: prepared statements, say. It is made as
  /// `T(session)` when a handler first asks for it on a connection, never moved, and destroyed before
  /// the connection is closed, and after each run that failed: a SOCI statement that has failed, or
  /// that outlives its connection, is not to be used again. A consumer on a session of the caller's
  /// keeps it for one `consume` or `consume_batch` only.
  ///
  /// `session` is the one that the handler was given; a handler that reconnects it loses what it kept.
  /// Errors: what `T`'s constructor throws.
  template <class T>
  T& per_connection(soci::session& session) {
    std::shared_ptr<void>& local = connection_local(typeid(T));
    if (!local) local = std::make_shared<T>(session);
    return *static_cast<T*>(local.get());
  }

 private:
  friend struct detail::DeliveryAccess;
  std::shared_ptr<void>& connection_local(const std::type_info&);

  const Message* message_;
  int attempt_;
  std::size_t index_;
  std::stop_token stop_;
  std::optional<std::string> stored_;
  detail::ConnectionLocals* locals_ = nullptr;
  std::unique_ptr<detail::ConnectionLocals> own_locals_;  ///< Of a delivery that no consumer made.
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
