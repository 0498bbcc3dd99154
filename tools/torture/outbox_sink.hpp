#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/outbox.hpp>

namespace txinbox::torture {

/// The topic of a storm's messages.
inline constexpr const char* outbox_topic = "txinbox-torture";

/// The payload that a handler writes into one of its messages.
struct OutboxPayload {
  std::string run;          ///< The run of the handler, as in the ledger.
  unsigned number = 0;      ///< Its number among the messages of the run, from 1.
  std::int64_t change = 0;  ///< How many transactions have changed the account that is the message's key.
};

std::string to_text(const OutboxPayload& payload);

/// Errors: none. If the text is not a payload, it returns nothing.
std::optional<OutboxPayload> read_payload(std::string_view text);

/// A message in the sink.
struct Published {
  std::string id;
  std::string key;
  OutboxPayload payload;
};

/// A file to which the relays of a storm publish. Each relay appends to it, so the file has the order of the
/// publications.
class Sink {
 public:
  /// Errors: `std::system_error`.
  explicit Sink(const std::string& file);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Appends the message in one write, so that the file has all of it or nothing.
  ///
  /// Errors: `std::system_error`.
  void take(const OutgoingMessage& message);

 private:
  int file_;
};

/// The contents of a sink, in order.
///
/// Errors: `std::runtime_error` if the file cannot be read, or has a line that no sink wrote.
std::vector<Published> read_sink(const std::string& file);

}  // namespace txinbox::torture
