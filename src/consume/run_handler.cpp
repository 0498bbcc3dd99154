#include "consume/run_handler.hpp"

#include <exception>
#include <new>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/database.hpp"
#include "backend/failure.hpp"
#include "pool/connection_locals.hpp"
#include "tables/outbox_scope.hpp"
#include "telemetry/listeners.hpp"
#include "telemetry/running_handler.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

namespace {

/// Makes a call of the handler. If the handler throws an exception of an unknown kind, finds out which error of the
/// session caused it.
template <class Call>
void with_errors_of(SessionHandle& session, const Call& call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const Refused&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    std::exception_ptr error = std::current_exception();
    if (Failure(error).is_of_database()) throw;
    auto code = session.backend().code_of_handler_error();
    if (!code) throw;
    const backend::Database& database = session.connection().database();
    const backend::ErrorClass found = database.meaning_of(*code).error_class;
    if (!backend::is_transient(found) && found != backend::ErrorClass::environment) throw;
    throw HandlerError{std::move(error), database.name(), std::move(*code)};
  }
}

void prepare(Delivery& delivery, const ConsumerPolicy& policy, SessionHandle& session) {
  DeliveryAccess::set_locals(delivery, session.locals());
  DeliveryAccess::set_keeps_statements(delivery, session.backend().keeps_statements());
  DeliveryAccess::set_max_result(delivery, policy.options.max_result);
}

/// At its end, while the transaction is open, it destroys the objects that the handler has kept, if the next
/// transaction can run on another connection of the server: their statements must end on this one.
class LocalsOfTransaction {
 public:
  explicit LocalsOfTransaction(SessionHandle& session) : session_(session) {}
  ~LocalsOfTransaction() {
    if (!session_.locals().empty() && !session_.backend().keeps_statements()) session_.drop_locals();
  }
  LocalsOfTransaction(const LocalsOfTransaction&) = delete;
  LocalsOfTransaction& operator=(const LocalsOfTransaction&) = delete;

 private:
  SessionHandle& session_;
};

/// Throws the refusal again. A handler that catches all exceptions may have caught it.
void throw_refusal(const Delivery& delivery) {
  if (DeliveryAccess::is_refused(delivery)) throw Refused{delivery.stored().value()};
}

}  // namespace

void run_handler(const ConsumerPolicy& policy, const Handler& handler, SessionHandle& session, Delivery& delivery) {
  prepare(delivery, policy, session);
  const LocalsOfTransaction locals(session);
  const OutboxScope outbox(session.backend(), policy.consumer, delivery.message());
  const RunningHandler running(policy.options, &delivery.message());
  const HandlerConnection connection(session.backend().connection_ptr());
  with_errors_of(session, [&] {
    run_in_scope(policy.options.listeners,
                 policy.scope(ScopeKind::handler, {&delivery.message(), 1}, delivery.attempt()),
                 [&] { handler(connection, delivery); });
  });
  throw_refusal(delivery);
}

void run_handler(const ConsumerPolicy& policy, const BatchHandler& handler, SessionHandle& session,
                 std::span<Delivery> deliveries, std::span<const Message> batch) {
  for (Delivery& each : deliveries) prepare(each, policy, session);
  const LocalsOfTransaction locals(session);
  const RunningHandler running(policy.options, deliveries.size() == 1 ? &deliveries.front().message() : nullptr);
  const HandlerConnection connection(session.backend().connection_ptr());
  with_errors_of(session, [&] {
    run_in_scope(policy.options.listeners, policy.scope(ScopeKind::handler, batch, deliveries.front().attempt()),
                 [&] { handler(connection, deliveries); });
  });
  for (const Delivery& each : deliveries) throw_refusal(each);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
