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

/// What a handler says of one of its messages.
struct OutboxPayload {
  std::string run;          ///< The run of the handler, as in the ledger.
  unsigned number = 0;      ///< Among the messages of the run, from 1.
  std::int64_t change = 0;  ///< Of the account that is the message's key: grows with each transaction that has it.
};

std::string to_text(const OutboxPayload& payload);

/// Errors: none for a text that is no payload: it gives nothing.
std::optional<OutboxPayload> read_payload(std::string_view text);

/// A message that the sink has taken.
struct Published {
  std::string id;
  std::string key;
  OutboxPayload payload;
};

/// Where the relays of a storm publish: a file to which each of them appends. It has the order in which it took the
/// messages.
class Sink {
 public:
  /// Errors: `std::system_error`.
  explicit Sink(const std::string& file);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Appends the message in one write, so that it is there as a whole or not at all.
  ///
  /// Errors: `std::system_error`.
  void take(const OutgoingMessage& message);

 private:
  int file_;
};

/// What a sink took, in its order.
///
/// Errors: `std::runtime_error` for a file that cannot be read, or a line that no sink wrote.
std::vector<Published> read_sink(const std::string& file);

}  // namespace txinbox::torture
