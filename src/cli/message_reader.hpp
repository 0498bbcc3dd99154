#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>

#include "bind.hpp"
#include "consume_options.hpp"
#include "key_template.hpp"

namespace txinbox::cli {

/// What makes a line a message: its key, its id, and the values for the SQL.
class MessageReader {
 public:
  /// Errors: `UsageError` for what the options say.
  MessageReader(const ConsumeOptions& options, const Script& script);

  struct Read {
    Message message;
    Bindings bindings;
  };

  /// Errors: `LineError`; `key` is then what could be read of it.
  Read read(std::string_view line, const Dialect& dialect, std::string& key) const;

 private:
  KeyTemplate key_;
  std::optional<JsonPointer> message_id_;
  Binder binder_;
};

}  // namespace txinbox::cli
