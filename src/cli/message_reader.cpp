#include "message_reader.hpp"

#include "usage_error.hpp"

namespace txinbox::cli {

MessageReader::MessageReader(const ConsumeOptions& options, const Script& script)
    : key_(options.key), binder_(script, options.binds) {
  if (!options.message_id.empty()) message_id_.emplace(options.message_id);
}

MessageReader::Read MessageReader::read(std::string_view line, const Dialect& dialect, std::string& key) const {
  const JsonValue root = parse_json_line(line);
  key = key_.key(root);
  Read result;
  result.message.business_key = key;
  if (message_id_) {
    // It is for tracing: a message that has none is consumed all the same.
    const JsonValue* value = message_id_->find(root);
    const bool none = value == nullptr || value->kind == JsonValue::Kind::null;
    if (!none) result.message.message_id = scalar_text(root, *message_id_, "message id");
  }
  result.bindings = binder_.bind(root, line, dialect);
  return result;
}

}  // namespace txinbox::cli
