#include "backend/failure.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/database_error.hpp"
#include "base/text.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Failure::Failure(std::exception_ptr error) noexcept : error_(std::move(error)) {
  if (!error_) return;
  try {
    std::rethrow_exception(error_);
  } catch (const Error& e) {
    code_ = e.code();
    is_transient_ = code_ == ErrorCode::acquire_timeout;
  } catch (const LeaseStoreError& e) {
    is_transient_ = e.kind() == LeaseStoreError::Kind::transient;
    is_of_environment_ = e.kind() == LeaseStoreError::Kind::permanent;
  } catch (const std::bad_alloc&) {
    is_of_environment_ = true;
  } catch (...) {
    auto found = backend::current_database_error();
    if (!found) return;
    database_ = std::make_shared<const backend::DatabaseErrorCode>(std::move(*found));
    class_ = database_->error_class();
    is_transient_ = backend::is_transient(class_);
    is_of_environment_ = class_ == backend::ErrorClass::environment;
  }
}

Failure Failure::as_lost_session() const noexcept {
  if (!database_ || !is_transient_) return *this;
  try {
    return Failure(std::make_exception_ptr(HandlerError{.original = original_error(error_),
                                                        .database = database_->database->name(),
                                                        .code = database_->code,
                                                        .is_session_lost = true}));
  } catch (...) {  // no memory
    return *this;
  }
}

}  // namespace detail

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
    case ErrorCode::result_too_large:
    case ErrorCode::invalid_message:
    case ErrorCode::unreadable:
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
    case ErrorCode::broker_refused:
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

Action detail::Failure::action() const noexcept { return code_ ? action_for(*code_) : Action::redeliver; }

Action action_for(const std::exception_ptr& error) noexcept { return detail::Failure(error).action(); }

bool is_transient(const std::exception_ptr& error) noexcept { return detail::Failure(error).is_transient(); }

namespace {

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  return name ? name.get() : type.name();
}

/// Returns, for example, "mysql 1146". Returns "database" for an error without a code.
std::string code_text(const backend::DatabaseErrorCode& error) {
  if (error.database == nullptr || error.code.empty()) return "database";
  return std::string(error.database->name()) + " " + error.code;
}

std::string description_of(const backend::DatabaseErrorCode& error) {
  const backend::ErrorDescription described = error.database == nullptr
                                                  ? backend::ErrorDescription{.what = "database error without a code"}
                                                  : error.database->describe(error.code);
  std::string text(described.what);
  if (!described.code.empty()) text += " " + described.code;
  if (!described.meaning.empty()) text.append(" (").append(described.meaning).append(")");
  return text;
}

}  // namespace

std::string error_class(const std::exception_ptr& error) {
  if (!error) return {};
  if (const detail::Failure failure(error); failure.is_of_database()) {
    return failure.is_transient() ? std::string(backend::to_string(failure.error_class()))
                                  : code_text(*failure.database());
  }
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(to_string(e.code()));
  } catch (const LeaseStoreError& e) {
    return e.code();
  } catch (const detail::HandlerError& e) {
    return error_class(e.original);
  } catch (const std::exception& e) {
    return name_of(typeid(e));
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type == nullptr ? "unknown" : name_of(*type);
  }
}

std::string describe_error(const std::exception_ptr& error, bool with_server_text) {
  if (!error) return {};
  if (const auto found = detail::Failure(error).database()) {
    const bool is_complete = found->database != nullptr && found->database->describe(found->code).is_complete;
    std::string text = description_of(*found);
    if (with_server_text && !is_complete && !found->text.empty()) text += ": " + detail::one_line(found->text);
    return text;
  }
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an error of an unknown kind";
  }
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
