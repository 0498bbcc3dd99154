#include <soci/error.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/backend.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::consumed:
      return "consumed";
    case Outcome::already_consumed:
      return "already_consumed";
    case Outcome::conflict:
      return "conflict";
    case Outcome::in_progress:
      return "in_progress";
    case Outcome::parked:
      return "parked";
    case Outcome::failed:
      return "failed";
    case Outcome::not_run:
      return "not_run";
    case Outcome::discarded:
      return "discarded";
    case Outcome::postponed:
      return "postponed";
  }
  return "unknown";
}

std::string_view to_string(Action action) noexcept {
  switch (action) {
    case Action::acknowledge:
      return "acknowledge";
    case Action::redeliver:
      return "redeliver";
    case Action::dead_letter:
      return "dead_letter";
    case Action::stop:
      return "stop";
  }
  return "unknown";
}

Action action_for(const Result& result) noexcept {
  switch (result.outcome) {
    case Outcome::consumed:
    case Outcome::already_consumed:
    case Outcome::discarded:
      return Action::acknowledge;
    case Outcome::conflict:
    case Outcome::parked:
      return Action::dead_letter;
    case Outcome::failed:
      return action_for(result.error);
    case Outcome::in_progress:
    case Outcome::postponed:
    case Outcome::not_run:
      return Action::redeliver;
  }
  return Action::redeliver;
}

namespace {

Action action_for(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_key:
    case ErrorCode::rejected:
      return Action::dead_letter;
    case ErrorCode::invalid_argument:
    case ErrorCode::schema_missing:
    case ErrorCode::schema_outdated:
    case ErrorCode::schema_too_new:
    case ErrorCode::schema_mismatch:
    case ErrorCode::unsupported_database:
    case ErrorCode::unsafe_connection:
    case ErrorCode::access_refused:
    case ErrorCode::transaction_open:
    case ErrorCode::nested_consume:
    case ErrorCode::forked:
      return Action::stop;
    case ErrorCode::transaction_lost:
    case ErrorCode::acquire_timeout:
    case ErrorCode::unknown_state:
    case ErrorCode::stopped:
    case ErrorCode::lease_lost:
    case ErrorCode::retry_later:
      return Action::redeliver;
  }
  return Action::redeliver;
}

}  // namespace

Action action_for(const std::exception_ptr& error) noexcept {
  if (!error) return Action::redeliver;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return action_for(e.code());
  } catch (...) {
    return Action::redeliver;
  }
}

bool is_transient(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == ErrorCode::acquire_timeout;
  } catch (const soci::soci_error& e) {
    return backend::is_transient(backend::classify(e));
  } catch (...) {
    return false;
  }
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
