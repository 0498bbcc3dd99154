#pragma once

#include <string>

#include <librdkafka/rdkafka.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// Throws if the code means that somebody must fix something. `what` is what was tried: "topic orders".
///
/// Errors: `Error` broker_refused or access_refused.
void throw_if_refused(rd_kafka_resp_err_t code, const std::string& what);

/// The code's name and meaning, for a log: librdkafka's own text for the code, which holds no value.
std::string describe(rd_kafka_resp_err_t code);

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
