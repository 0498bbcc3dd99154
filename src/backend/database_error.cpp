#include "backend/database_error.hpp"

#include <stdexcept>
#include <utility>

#include "backend/registry.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

class PlainDatabaseError final : public std::runtime_error, public DatabaseError {
 public:
  PlainDatabaseError(std::string_view database, std::string code, const std::string& text)
      : runtime_error(text), DatabaseError(database, std::move(code)) {}

  const char* what() const noexcept override { return runtime_error::what(); }
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return {};
  }
}

}  // namespace

void throw_database_error(std::string_view database, void* handle, std::string code, const std::string& text) {
  if (throw_soci_error != nullptr) throw_soci_error(database, handle, code, text);
  throw PlainDatabaseError(database, std::move(code), text);
}

ErrorClass DatabaseErrorCode::error_class() const noexcept {
  if (is_session_lost) return ErrorClass::connection_lost;
  return database == nullptr ? ErrorClass::other : database->meaning_of(code).error_class;
}

std::optional<DatabaseErrorCode> current_database_error() noexcept {
  try {
    throw;
  } catch (const DatabaseError& error) {
    return DatabaseErrorCode{find_database(error.database()), error.code(), error.what()};
  } catch (const detail::HandlerError& error) {
    if (error.is_proven) return std::nullopt;
    return DatabaseErrorCode{find_database(error.database), error.code, text_of(error.original), error.is_session_lost};
  } catch (...) {
    return current_soci_error == nullptr ? std::nullopt : current_soci_error();
  }
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
