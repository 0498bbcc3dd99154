#include "kafka_error.hpp"

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

std::string describe(rd_kafka_resp_err_t code) {
  return std::string(rd_kafka_err2name(code)) + " (" + rd_kafka_err2str(code) + ")";
}

bool is_too_large(rd_kafka_resp_err_t code) noexcept {
  return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || code == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

void throw_if_refused(rd_kafka_resp_err_t code, const std::string& what) {
  const auto refuse = [&](ErrorCode error, const char* remedy) {
    throw Error(error, "Kafka: " + what + ": " + describe(code) + "; " + remedy);
  };
  switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      refuse(ErrorCode::broker_refused, "create the topic, or correct its name");
      break;
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
      refuse(ErrorCode::broker_refused, "correct the name");
      break;
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
    case RD_KAFKA_RESP_ERR__FENCED:
      refuse(ErrorCode::broker_refused,
             "another consumer of the group has the same group.instance.id: give each its own");
      break;
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
      refuse(ErrorCode::broker_refused,
             "the other consumers of the group have another partition.assignment.strategy: set the same one");
      break;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      refuse(ErrorCode::access_refused, "give the user this right");
      break;
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
      refuse(ErrorCode::access_refused,
             "correct sasl.username, sasl.password (TXINBOX_KAFKA_PASSWORD for options from a URL) or sasl.mechanism");
      break;
    case RD_KAFKA_RESP_ERR__SSL:
      refuse(ErrorCode::access_refused,
             "the TLS handshake failed: correct ssl.ca.location, the broker's certificate or its host name");
      break;
    default:
      break;
  }
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
