#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace txinbox::inline TXINBOX_ABI {

/// One arrival of a message, as its handler sees it. Lives for one run of the handler.
///
/// Threads: for the handler's thread only.
class Delivery {
 public:
  /// `consume` makes these; a test of a handler may too. `message` must outlive the delivery.
  Delivery(const Message& message, int attempt, std::stop_token stop = {}, std::size_t index = 0)
      : message_(&message), attempt_(attempt), index_(index), stop_(std::move(stop)) {}

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

 private:
  const Message* message_;
  int attempt_;
  std::size_t index_;
  std::stop_token stop_;
  std::optional<std::string> stored_;
};

}  // namespace txinbox::inline TXINBOX_ABI
