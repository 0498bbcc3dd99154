#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>

#include "cli/consume/consume_options.hpp"
#include "cli/sql/bind.hpp"
#include "message/json/json_fields.hpp"
#include "message/json/key_template.hpp"

namespace txinbox::cli {

/// What makes a line a message: its key, its id, its content, and the values for the SQL.
class MessageReader {
 public:
  /// The script must outlive it. `longest_statement`: that the server takes, in bytes; 0: no limit.
  ///
  /// Errors: `Error` invalid_argument for what the options say.
  MessageReader(const ConsumeOptions& options, const Script& script, const Dialect& dialect,
                std::size_t longest_statement = 0);

  /// Errors: `LineError`; the message's key is then what could be read of it.
  void read(std::string_view line, Message& message, Values& values) const;

 private:
  detail::KeyTemplate key_;
  std::optional<JsonPointer> message_id_;
  detail::JsonFields content_;
  const Script& script_;
  Binder binder_;
  Dialect dialect_;
  bool keep_payload_;
  std::size_t longest_statement_;
};

}  // namespace txinbox::cli
