#include "cli/consume/message_reader.hpp"

#include <string>
#include <string_view>

#include <txinbox/error.hpp>
#include <txinbox/message_of.hpp>

#include "cli/sql/statement_size.hpp"
#include "console/usage_error.hpp"
#include "run/delivery_key.hpp"

namespace txinbox::cli {
namespace {

/// Calls `read`. An error in the body that does not concern the key is `Error` unreadable.
template <class Read>
void readable(Read read) {
  try {
    read();
  } catch (const LineError& error) {
    throw Error(ErrorCode::unreadable, error.what());
  }
}

}  // namespace

MessageReader::MessageReader(const ConsumeOptions& options, const Script& script, const SqlLimits& limits)
    : key_(options.key, "--key", detail::KeyValues::delivery),
      script_(script),
      binder_(script, options.binds),
      limits_(limits),
      keep_payload_(options.keep_payload) {
  if (key_.has_value_of_delivery() && options.from.empty()) {
    throw UsageError("--key " + options.key + " is for the messages of a broker: it needs --from");
  }
  if (!options.message_id.empty()) message_id_ = pointer_of_option("--message-id", options.message_id);
  for (const auto& pointer : options.content) content_.add(pointer_of_option("--content", pointer));
}

void MessageReader::read(std::string_view line, Message& message, Values& values) const {
  const JsonValue root = parse_json_line(line);
  message.business_key = key_.key(root);
  read(root, line, message, values);
}

void MessageReader::read(const Incoming& incoming, Message& message, Values& values) const {
  if (!incoming.has_body) throw Error(ErrorCode::unreadable, "the message has no body");
  const JsonValue root = parse_json_line(incoming.body);
  message.business_key =
      key_.key(root, [&](const detail::KeyPart& part) { return detail::delivery_value(incoming, part); });
  readable([&] { read(root, incoming.body, message, values); });
  if (message.message_id.empty()) message.message_id = traceable_id(std::string(incoming.id));
}

void MessageReader::read(const JsonValue& root, std::string_view line, Message& message, Values& values) const {
  if (message_id_) {
    // The id is only for tracing. A message without an id is consumed, too.
    message.message_id = traceable_id(text_or_none(root, *message_id_, "message id").value_or(""));
  }
  message.content = content_.content(root);
  if (keep_payload_) message.payload = line;
  values = binder_.bind(root, line, limits_);
  check_size(script_, values, limits_);
}

}  // namespace txinbox::cli
