#include "backend/error_classification.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>

#include <soci/error.h>
#include <txinbox/result.hpp>

#include "backend/registry.hpp"
#include "base/one_line.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

bool has_error_code(const std::exception_ptr& error, ErrorCode code) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == code;
  } catch (...) {
    return false;
  }
}

backend::ErrorClass error_class_of(const std::exception_ptr& error) noexcept {
  if (!error) return backend::ErrorClass::other;
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error& e) {
    return backend::classify(e);
  } catch (...) {
    return backend::ErrorClass::other;
  }
}

bool is_database_error(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

bool is_fatal_to_session(const std::exception_ptr& error) noexcept {
  return backend::is_fatal_to_session(error_class_of(error));
}

bool is_environment_error(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return error_class_of(error) == backend::ErrorClass::environment;
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

namespace {

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  return name ? name.get() : type.name();
}

}  // namespace

std::string error_class(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(to_string(e.code()));
  } catch (const soci::soci_error& e) {
    const backend::ErrorClass found = backend::classify(e);
    return backend::is_transient(found) ? std::string(backend::to_string(found)) : backend::code_of(e);
  } catch (const std::exception& e) {
    return name_of(typeid(e));
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type == nullptr ? "unknown" : name_of(*type);
  }
}

std::string describe_error(const std::exception_ptr& error, bool with_server_text) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.what();
  } catch (const soci::soci_error& e) {
    const backend::ErrorDescription described = backend::describe(e);
    std::string text(described.what);
    if (!described.code.empty()) text += " " + described.code;
    if (!described.meaning.empty()) text.append(" (").append(described.meaning).append(")");
    if (with_server_text && !described.is_complete) text += ": " + detail::one_line(e.get_error_message());
    return text;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an error of an unknown kind";
  }
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
