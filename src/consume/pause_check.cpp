#include "consume/pause_check.hpp"

#include <array>

#include <txinbox/error.hpp>

#include "backend/catalog.hpp"
#include "backend/database.hpp"
#include "backend/failure.hpp"
#include "backend/table_check.hpp"
#include "pool/with_session.hpp"
#include "schema/verification.hpp"
#include "tables/pause_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The server would log an error for each query of a table that does not exist, but not for a look into the catalog.
bool finds_table(backend::Session& session) {
  constexpr std::array tables{backend::pause_table};
  const backend::ConnectionPtr& connection = session.connection_ptr();
  const OutsideTransaction outside(connection);
  try {
    schema_of_tables(*connection->database().catalog(connection), tables);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::schema_missing) throw;
    return false;
  }
}

}  // namespace

bool PauseCheck::is_paused(SessionProvider& source, const std::string& consumer, const std::stop_token& stop) {
  using namespace std::chrono_literals;
  const std::lock_guard lock(mutex_);
  if (Clock::now() < next_) return is_paused_;
  try {
    with_session(source, stop, [&](backend::Session& session) {
      if (!has_table_) has_table_ = finds_table(session);
      is_paused_ = has_table_ && PauseTable(session).contains(consumer);
    });
  } catch (...) {
    const Failure failure = Failure::current();
    if (!failure.is_of_database() || failure.is_transient()) throw;
    has_table_ = false;
    if (failure.is_of_environment()) throw;  // a full disk does not say whether the consumer is paused
  }
  next_ = Clock::now() + (has_table_ ? 1s : 60s);
  return is_paused_;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
