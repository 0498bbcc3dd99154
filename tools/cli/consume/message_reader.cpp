#include "cli/consume/message_reader.hpp"

#include <string_view>

#include <txinbox/message_of.hpp>

#include "cli/sql/statement_size.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {

MessageReader::MessageReader(const ConsumeOptions& options, const Script& script, const backend::SqlLimits& limits)
    : script_(script), binder_(script, options.binds), limits_(limits), keep_payload_(options.keep_payload) {
  constexpr std::string_view header = "@header:";
  constexpr std::string_view hex_header = "@header-hex:";
  if (options.key == "@key") {
    key_of_delivery_ = key_from_record();
  } else if (options.key == "@key-hex") {
    key_of_delivery_ = key_from_record(KeyBytes::hex);
  } else if (options.key.starts_with(header)) {
    key_of_delivery_ = key_from_header(options.key.substr(header.size()));
  } else if (options.key.starts_with(hex_header)) {
    key_of_delivery_ = key_from_header(options.key.substr(hex_header.size()), KeyBytes::hex);
  } else {
    key_.emplace(options.key, "--key");
  }
  if (key_of_delivery_ && options.from.empty()) {
    throw UsageError("--key " + options.key + " is for the messages of a broker: it needs --from");
  }
  if (!options.message_id.empty()) message_id_.emplace(options.message_id);
  for (const auto& pointer : options.content) content_.add(pointer);
}

void MessageReader::read(std::string_view line, Message& message, Values& values) const {
  JsonValue root = parse_json_line(line);
  if (key_) message.business_key = key_->key(root);
  if (message_id_) {
    // The id is only for tracing. A message without an id is consumed, too.
    message.message_id = traceable_id(text_or_none(root, *message_id_, "message id").value_or(""));
  }
  message.content = content_.content(root);
  if (keep_payload_) message.payload = line;
  values = binder_.bind(root, line, limits_);
  check_size(script_, values, limits_);
}

void MessageReader::read(const Incoming& incoming, Message& message, Values& values) const {
  if (key_of_delivery_) message = key_of_delivery_(incoming);
  message.message_id = traceable_id(std::string(incoming.id));
  if (!incoming.has_body) throw LineError("the message has no body");
  read(incoming.body, message, values);
  if (message.message_id.empty()) message.message_id = traceable_id(std::string(incoming.id));
  message.payload = keep_payload_ ? incoming.body : std::string_view();
}

}  // namespace txinbox::cli
