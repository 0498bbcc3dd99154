#pragma once

/// @file
/// Handlers: the functions that consumers call.

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <txinbox/connection_ref.hpp>
#include <txinbox/delivery.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_API_BEGIN

class Lease;

/// @cond
namespace detail {

/// The connection that a handler runs on. It converts to the type that the handler takes.
class HandlerConnection {
 public:
  explicit HandlerConnection(std::shared_ptr<const backend::NativeConnection> connection) noexcept
      : connection_(std::move(connection)) {}

  // NOLINTBEGIN(google-explicit-constructor, bugprone-forwarding-reference-overload): it converts
  // This constructor lets a test, or another handler, call a handler directly.
  template <std::convertible_to<ConnectionRef> Connection>
  requires(!std::same_as<std::remove_cvref_t<Connection>, HandlerConnection>) HandlerConnection(Connection&& connection)
      : HandlerConnection(connection_in(std::forward<Connection>(connection))) {}

  // Errors: `Error` invalid_argument if the connection is of another kind than the handler takes.
  operator soci::session&() const;
  operator NativeHandle() const;
  template <NativeConnectionType Connection>
  operator Connection*() const {
    return static_cast<Connection*>(handle_for(native_database<Connection>));
  }
  // NOLINTEND(google-explicit-constructor, bugprone-forwarding-reference-overload)

 private:
  static std::shared_ptr<const backend::NativeConnection> connection_in(const ConnectionRef&) noexcept;
  void* handle_for(std::string_view database) const;

  std::shared_ptr<const backend::NativeConnection> connection_;
};

/// The types that the first parameter of a callable may have, in the order in which they are tried. The type `Second`
/// is for callables that do not take `First`.
template <class Argument>
struct FirstParameter {
  using First = Argument;
  using Second = Argument;
};
template <>
struct FirstParameter<const HandlerConnection> {
  using First = soci::session;
  using Second = const HandlerConnection;
};

template <class F>
inline constexpr bool is_std_function = false;
template <class Signature>
inline constexpr bool is_std_function<std::function<Signature>> = true;

/// Whether a callable takes all these parameters, or only the first one.
template <class Callable, class First, class... More>
inline constexpr bool takes =
    std::is_invocable_v<Callable&, First&, More&...> || std::is_invocable_v<Callable&, First&>;

/// Whether a callable takes the connection and all deliveries of a batch. The check for a handler of one delivery comes
/// first, because a generic lambda may not compile with other arguments.
template <class F>
consteval bool takes_deliveries() {
  using Callable = std::decay_t<F>;
  if constexpr (takes<Callable, soci::session, Delivery> || takes<Callable, const HandlerConnection, Delivery>) {
    return false;
  } else {
    return std::is_invocable_v<Callable&, soci::session&, std::span<Delivery>&> ||
           std::is_invocable_v<Callable&, const HandlerConnection&, std::span<Delivery>&>;
  }
}

/// Whether a callable becomes this kind of handler. A callable that fits no kind becomes the handler of one delivery,
/// so that the compiler's message says what a handler takes.
template <class F, class... More>
inline constexpr bool is_meant = true;
template <class F>
inline constexpr bool is_meant<F, Delivery> = !takes_deliveries<F>();
template <class F>
inline constexpr bool is_meant<F, std::span<Delivery>> = takes_deliveries<F>();

/// A `std::function` that accepts only callables which return nothing. A callable may omit all parameters except the
/// first.
template <class First, class... More>
class BasicHandler {
 public:
  /// Makes an empty handler. Consumers refuse it.
  BasicHandler() = default;

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, BasicHandler> && is_meant<F, More...>)
      BasicHandler(F&& function)  // NOLINT
      : function_(adapted(std::forward<F>(function))) {}

  explicit operator bool() const noexcept { return static_cast<bool>(function_); }
  void operator()(First& first, More&... more) const { function_(first, more...); }

 private:
  using Function = std::function<void(First&, More&...)>;

  template <class F>
  static Function adapted(F&& function) {
    using Callable = std::decay_t<F>;
    if constexpr (std::is_same_v<Callable, std::nullptr_t>) {
      return {};
    } else {
      using Parameter = FirstParameter<First>;
      using Chosen = std::conditional_t<takes<Callable, typename Parameter::First, More...>, typename Parameter::First,
                                        typename Parameter::Second>;
      static_assert(takes<Callable, Chosen, More...>,
                    "a handler takes (soci::session&), (soci::session&, txinbox::Delivery&), of a batch also "
                    "(soci::session&, std::span<txinbox::Delivery>) or, of a LeaseConsumer, (txinbox::Lease&). With "
                    "txinbox/native.hpp it may take a PGconn*, a MYSQL*, a sqlite3* or a txinbox::NativeHandle instead "
                    "of the session");
      constexpr bool is_function = std::is_function_v<std::remove_reference_t<F>>;
      if constexpr (!is_function && (std::is_pointer_v<Callable> || is_std_function<Callable>)) {
        if (!function) return {};
      }
      if constexpr (std::is_invocable_v<Callable&, Chosen&, More&...>) {
        refuse_returned<std::invoke_result_t<Callable&, Chosen&, More&...>>();
        return [f = Callable(std::forward<F>(function))](First& first, More&... more) mutable {
          std::invoke(f, static_cast<Chosen&>(first), more...);
        };
      } else if constexpr (std::is_invocable_v<Callable&, Chosen&>) {
        refuse_returned<std::invoke_result_t<Callable&, Chosen&>>();
        return [f = Callable(std::forward<F>(function))](First& first, More&...) mutable {
          std::invoke(f, static_cast<Chosen&>(first));
        };
      } else {
        return {};
      }
    }
  }

  template <class Returned>
  static void refuse_returned() {
    static_assert(std::is_void_v<Returned>,
                  "a handler returns nothing, since nobody would look at it; it throws to say that it failed. A "
                  "coroutine would not have run when the transaction commits");
  }

  Function function_;
};

}  // namespace detail
/// @endcond

/// The user's code of a `TxConsumer`: a copyable function (soci::session&, Delivery&) or (soci::session&). It returns
/// nothing, and runs SQL on the session that it gets. It may run several times within one `consume`. Only the SQL of
/// one run is committed.
///
/// With `#include <txinbox/native.hpp>`, a handler may take the connection of the client library instead of the
/// session: a `PGconn*`, a `MYSQL*`, a `sqlite3*`, or a `NativeHandle` for any of them. If the consumer's database has
/// another type of connection, the delivery ends with `Error` invalid_argument. The same happens if a handler takes a
/// session and its consumer has none.
///
/// A handler must not begin, commit or roll back a transaction. On MariaDB and MySQL it must not run DDL. On PostgreSQL
/// it must not run SET CONSTRAINTS ALL IMMEDIATE. It may use savepoints of its own. A pool's session refuses
/// `reconnect()` with `Error` transaction_lost. The transaction does not cover what the handler does outside of the
/// session: an HTTP call, a file, another database.
///
/// A handler throws if the message failed. It may throw any exception. Two exceptions have a special meaning: `Error`
/// rejected parks the message at once. `RetryLater` asks for a later delivery, and no failure is counted.
using Handler = detail::BasicHandler<const detail::HandlerConnection, Delivery>;

/// The user's code of a `TxConsumer` for many messages at once: a copyable function (soci::session&,
/// std::span<Delivery>) that returns nothing. With it, one SQL statement can do the work of a whole batch.
///
/// It gets the new messages of a batch in the given order, at least one, each key once. It does not get duplicates. The
/// rules of `Handler` also apply to it, with one exception: if it throws, txinbox rolls back and runs it again with
/// half of the messages, until it fails with one message alone. Only that message has failed. So the handler only has
/// to throw, even if it knows which message is bad.
///
/// `Delivery::store` and `Delivery::refuse` work as in a `Handler`. A refusal ends the handler, so the handler runs
/// again for the other messages.
using BatchHandler = detail::BasicHandler<const detail::HandlerConnection, std::span<Delivery>>;

/// The user's code of a batch: a `Handler`, a `BatchHandler`, or one of each that do the same work. A function that is
/// a `Handler` or a `BatchHandler` converts to it.
///
///     consumer.consume_batch(messages, [](soci::session&, Delivery&) {});            // for each message
///     consumer.consume_batch(messages, [](soci::session&, std::span<Delivery>) {});  // for all new messages at once
///     consumer.consume_batch(messages, {at_once, each});                             // both
///
/// The conversion copies the function. For many calls, keep one `BatchHandlers`.
class BatchHandlers {
 public:
  /// Makes empty handlers. Consumers refuse them.
  BatchHandlers() = default;

  /// A handler for each message, or a handler for all new messages at once.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, BatchHandlers>) BatchHandlers(F&& function) {  // NOLINT
    if constexpr (detail::takes_deliveries<F>()) {
      at_once_.emplace(std::forward<F>(function));
    } else {
      each_.emplace(std::forward<F>(function));
    }
  }

  /// A handler for all new messages at once, at least two, and a handler for one message. Use it if the SQL needs one
  /// statement for each message, but one round trip can carry the statements of many messages.
  ///
  /// If `at_once` throws, txinbox rolls back and runs `each` for each message, in a savepoint of its own. So a batch in
  /// which many messages fail takes two transactions. A `BatchHandler` alone takes several transactions for each
  /// message that fails. After a transient error, `at_once` runs again, and `Delivery::attempt` is then 2. If only one
  /// message is new, `each` runs.
  BatchHandlers(BatchHandler at_once, Handler each) : at_once_(std::move(at_once)), each_(std::move(each)) {}

  /// Whether the handlers that were given can be called, and there is at least one.
  explicit operator bool() const noexcept {
    return (at_once_ || each_) && (!at_once_ || *at_once_) && (!each_ || *each_);
  }

  /// The handler for all new messages; null if there is none.
  const BatchHandler* at_once() const noexcept { return at_once_ ? &*at_once_ : nullptr; }

  /// The handler for one message; null if there is none.
  const Handler* each() const noexcept { return each_ ? &*each_ : nullptr; }

 private:
  std::optional<BatchHandler> at_once_;
  std::optional<Handler> each_;
};

/// The user's code of a `LeaseConsumer`: a copyable function (Lease&) that returns nothing. It is for work that cannot
/// be in one transaction, such as a call of another service. It runs outside of any transaction and holds no
/// connection.
///
/// It may run again for the same key: after it threw, after its process crashed, or after its lease expired. If the
/// lease expired, the first run may still be working. So make the work idempotent, or pass `Lease::fence` to a service
/// that refuses a fence smaller than the greatest one that it has seen.
///
/// It reports a failure by an exception, as `Handler` does.
using LeaseHandler = detail::BasicHandler<Lease>;

TXINBOX_API_END
}  // namespace txinbox
