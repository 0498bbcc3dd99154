#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_key:
      return "invalid_key";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::schema_missing:
      return "schema_missing";
    case ErrorCode::schema_outdated:
      return "schema_outdated";
    case ErrorCode::schema_too_new:
      return "schema_too_new";
    case ErrorCode::schema_mismatch:
      return "schema_mismatch";
    case ErrorCode::unsupported_database:
      return "unsupported_database";
    case ErrorCode::unsafe_connection:
      return "unsafe_connection";
    case ErrorCode::transaction_open:
      return "transaction_open";
    case ErrorCode::transaction_lost:
      return "transaction_lost";
    case ErrorCode::rejected:
      return "rejected";
    case ErrorCode::acquire_timeout:
      return "acquire_timeout";
    case ErrorCode::nested_consume:
      return "nested_consume";
    case ErrorCode::unknown_state:
      return "unknown_state";
    case ErrorCode::stopped:
      return "stopped";
    case ErrorCode::lease_lost:
      return "lease_lost";
    case ErrorCode::forked:
      return "forked";
    case ErrorCode::access_refused:
      return "access_refused";
    case ErrorCode::retry_later:
      return "retry_later";
  }
  return "unknown";
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
