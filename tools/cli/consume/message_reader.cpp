#include "cli/consume/message_reader.hpp"

#include "cli/sql/statement_size.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {

MessageReader::MessageReader(const ConsumeOptions& options, const Script& script, const backend::SqlLimits& limits)
    : key_(options.key, "--key"),
      script_(script),
      binder_(script, options.binds),
      limits_(limits),
      keep_payload_(options.keep_payload) {
  if (!options.message_id.empty()) message_id_.emplace(options.message_id);
  for (const auto& pointer : options.content) content_.add(pointer);
}

void MessageReader::read(std::string_view line, Message& message, Values& values) const {
  JsonValue root = parse_json_line(line);
  message.business_key = key_.key(root);
  if (message_id_) {
    // It is for tracing: a message that has none is consumed all the same.
    message.message_id = text_or_none(root, *message_id_, "message id").value_or("");
  }
  message.content = content_.content(root);
  if (keep_payload_) message.payload = line;
  values = binder_.bind(root, line, limits_);
  check_size(script_, values, limits_);
}

}  // namespace txinbox::cli
