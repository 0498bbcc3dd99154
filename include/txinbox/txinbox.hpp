#pragma once

/// @file
/// Includes the headers that a service needs: those that consume, publish and configure.
///
/// Include native.hpp, handler_check.hpp and soci/execute.hpp where you use them, and the headers for operators:
/// failed_messages.hpp, inspect.hpp, operations.hpp, outbox_messages.hpp and redrive.hpp.

#include <txinbox/connection_ref.hpp>
#include <txinbox/consumer_options.hpp>
#include <txinbox/delivery.hpp>
#include <txinbox/error.hpp>
#include <txinbox/idempotent.hpp>
#include <txinbox/incoming.hpp>
#include <txinbox/json.hpp>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/lease_store.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/message.hpp>
#include <txinbox/message_of.hpp>
#include <txinbox/metrics.hpp>
#include <txinbox/outbox.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/pool_options.hpp>
#include <txinbox/result.hpp>
#include <txinbox/retention.hpp>
#include <txinbox/run.hpp>
#include <txinbox/schema.hpp>
#include <txinbox/source.hpp>
#include <txinbox/transaction.hpp>
#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>

/// A transactional inbox: for each message, the SQL of its handler takes effect exactly once.
///
/// Most services need `open_pool`, `TxConsumer` and `run` with the source of their broker, or `action_for` in a loop of
/// their own. `LeaseConsumer` is for handlers that call other services.
///
/// These rules hold for every function, unless it says something else:
/// - A free function uses its connection only during the call. No other thread may use the connection during the call.
/// - "A database error as it was" is a `DatabaseError`. In a program that links txinbox::txinbox it is also SOCI's
///   exception for the database, a `soci::soci_error`. `is_transient`, `error_class` and `action_for` say what it
///   means.
/// - A function that is not `noexcept` may also throw `std::bad_alloc`.
namespace txinbox {}
