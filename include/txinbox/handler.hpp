#pragma once

/// @file
/// What a handler is: the functions that consumers call.

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Delivery;
class Lease;

namespace detail {

template <class F>
inline constexpr bool is_std_function = false;
template <class Signature>
inline constexpr bool is_std_function<std::function<Signature>> = true;

/// A `std::function` that accepts only callables which return nothing. A callable may omit all parameters but the
/// first.
template <class First, class... More>
class BasicHandler {
 public:
  /// An empty handler. Consumers refuse it.
  BasicHandler() = default;

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, BasicHandler>) BasicHandler(F&& function)  // NOLINT
      : function_(adapted(std::forward<F>(function))) {}

  explicit operator bool() const noexcept { return static_cast<bool>(function_); }
  void operator()(First& first, More&... more) const { function_(first, more...); }

 private:
  using Function = std::function<void(First&, More&...)>;

  template <class F>
  static Function adapted(F&& function) {
    using Callable = std::decay_t<F>;
    if constexpr (std::same_as<Callable, std::nullptr_t>) {
      return {};
    } else {
      constexpr bool takes_all = std::is_invocable_v<Callable&, First&, More&...>;
      static_assert(takes_all || std::is_invocable_v<Callable&, First&>,
                    "a handler takes (soci::session&), (soci::session&, txinbox::Delivery&) or, of a LeaseConsumer, "
                    "(txinbox::Lease&)");
      constexpr bool is_function = std::is_function_v<std::remove_reference_t<F>>;
      if constexpr (!is_function && (std::is_pointer_v<Callable> || is_std_function<Callable>)) {
        if (!function) return {};
      }
      if constexpr (takes_all) {
        refuse_returned<std::invoke_result_t<Callable&, First&, More&...>>();
        return Function(std::forward<F>(function));
      } else if constexpr (std::is_invocable_v<Callable&, First&>) {
        refuse_returned<std::invoke_result_t<Callable&, First&>>();
        return [f = Callable(std::forward<F>(function))](First& first, More&...) mutable { std::invoke(f, first); };
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

/// The user's code of a `TxConsumer`: a copyable function (soci::session&, Delivery&) or (soci::session&). It returns
/// nothing, and runs SQL on the session that it is given. It may run several times within one `consume`. The SQL of
/// only one run stays.
///
/// A handler must not begin, commit or roll back a transaction. It must not run DDL on MariaDB and MySQL, nor SET
/// CONSTRAINTS ALL IMMEDIATE on PostgreSQL. It may use savepoints of its own. A pool's session refuses `reconnect()`
/// with `Error` transaction_lost. The transaction does not cover what the handler does outside of the session: an HTTP
/// call, a file, another database.
///
/// A handler throws if the message failed. It may throw any exception. Two exceptions have a meaning: `Error` rejected
/// parks the message at once; `RetryLater` asks for a later delivery, and no failure is counted.
using Handler = detail::BasicHandler<soci::session, Delivery>;

/// The user's code of a `LeaseConsumer`: a copyable function (Lease&) that returns nothing. It is for work that cannot
/// be in one transaction, such as a call of another service. It runs outside of any transaction and holds no
/// connection.
///
/// It may run again for the same key: after it threw, after its process crashed, or after its lease expired. In the
/// last case the first run may still be at work. So make its work idempotent, or pass `Lease::fence` to a service that
/// refuses smaller fences than the greatest that it has seen.
///
/// It throws as `Handler` does.
using LeaseHandler = detail::BasicHandler<Lease>;

TXINBOX_NAMESPACE_END
}  // namespace txinbox
