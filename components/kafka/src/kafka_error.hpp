#pragma once

#include <string>

#include <librdkafka/rdkafka.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// Throws if the code is an error that only an operator can correct. `what` names the subject, for example "topic
/// orders".
///
/// Errors: `Error` broker_refused or access_refused.
void throw_if_refused(rd_kafka_resp_err_t code, const std::string& what);

/// Whether the broker, or the client, takes no record or no batch of this size.
bool is_too_large(rd_kafka_resp_err_t code) noexcept;

/// The code's name and meaning, for a log. It is librdkafka's text for the code, which contains no values.
std::string describe(rd_kafka_resp_err_t code);

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
