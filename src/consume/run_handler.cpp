#include "consume/run_handler.hpp"

#include <exception>
#include <new>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/database.hpp"
#include "backend/error_classification.hpp"
#include "consume/refused.hpp"
#include "pool/connection_locals.hpp"
#include "telemetry/scope.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void run_handler(const ConsumerPolicy& policy, const Handler& handler, SessionHandle& session, Delivery& delivery) {
  DeliveryAccess::set_locals(delivery, session.locals());
  DeliveryAccess::set_max_result(delivery, policy.options.max_result);
  const HandlerConnection connection(session.backend().connection_ptr());
  try {
    run_in_scope(policy.options.listeners,
                 policy.scope(ScopeKind::handler, {&delivery.message(), 1}, delivery.attempt()),
                 [&] { handler(connection, delivery); });
  } catch (const Error&) {
    throw;
  } catch (const Refused&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    std::exception_ptr error = std::current_exception();
    if (is_database_error(error)) throw;
    auto code = session.backend().code_of_handler_error();
    if (!code) throw;
    const backend::Database& database = session.connection().database();
    const backend::ErrorClass found = database.meaning_of(*code).error_class;
    if (!backend::is_transient(found) && found != backend::ErrorClass::environment) throw;
    throw HandlerError{std::move(error), database.name(), std::move(*code)};
  }
  // A handler with a catch clause for everything.
  if (DeliveryAccess::is_refused(delivery)) throw Refused{delivery.stored().value()};
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
