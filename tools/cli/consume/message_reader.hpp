#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/source.hpp>

#include "cli/consume/consume_options.hpp"
#include "cli/sql/bind.hpp"
#include "message/json/json_pointer.hpp"
#include "message/json/key_template.hpp"

namespace txinbox::cli {

/// Makes a message of a line, or of a broker's delivery: its key, its id, its content, and the values for the SQL.
class MessageReader {
 public:
  /// The script must outlive this object.
  ///
  /// Errors: `Error` invalid_argument for invalid options.
  MessageReader(const ConsumeOptions& options, const Script& script, const SqlLimits& limits);

  /// Errors: `LineError`. The message then has the key, if it could be read.
  void read(std::string_view line, Message& message, Values& values) const;

  /// The same for a broker's delivery.
  ///
  /// Errors: `Error` invalid_key if it has no key. `Error` unreadable if it has no body, if the body is not a JSON
  ///         object, or if it lacks a value for the SQL.
  void read(const Incoming& incoming, Message& message, Values& values) const;

 private:
  void read(const JsonValue& root, std::string_view line, Message& message, Values& values) const;

  detail::KeyTemplate key_;
  std::optional<JsonPointer> message_id_;
  detail::JsonFields content_;
  const Script& script_;
  Binder binder_;
  SqlLimits limits_;
  bool keep_payload_;
};

}  // namespace txinbox::cli
