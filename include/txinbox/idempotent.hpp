#pragma once

/// @file
/// Makes a service's own handler idempotent in one line.

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <txinbox/handler.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// @cond
namespace detail {

/// An integer type that can be a number in a key. `bool` and the character types are excluded.
template <class T>
concept Number = std::integral<T> && sizeof(T) > 1 && !std::same_as<T, wchar_t> && !std::same_as<T, char16_t> &&
                 !std::same_as<T, char32_t>;

/// The key that `f` returns for `message`, as text.
template <class F, class M>
std::string text_from(const F& f, const M& message) {
  decltype(auto) said = std::invoke(f, message);
  using Said = std::remove_cvref_t<decltype(said)>;
  static_assert(Number<Said> || std::is_constructible_v<std::string_view, const Said&>,
                "a key is text or an integer: std::string, std::string_view, std::int64_t");
  if constexpr (Number<Said>) {
    return std::to_string(said);
  } else {
    return std::string(std::string_view(said));
  }
}

/// The `Message` that `f` returns for `message`. If `f` returns only a key, a `Message` with that key.
template <class F, class M>
Message message_from(const F& f, const M& message) {
  static_assert(std::invocable<const F&, const M&>, "key_of is no function of this message");
  if constexpr (std::convertible_to<std::invoke_result_t<const F&, const M&>, Message>) {
    return std::invoke(f, message);
  } else {
    return {.business_key = text_from(f, message)};
  }
}

template <class Handler, class... Arguments>
void call(const Handler& handler, Arguments&... arguments) {
  static_assert(std::is_void_v<std::invoke_result_t<const Handler&, Arguments&...>>,
                "a handler returns nothing; it throws to say that it failed");
  std::invoke(handler, arguments...);
}

template <class Handler, class M, class First>
inline constexpr bool takes_first =
    std::invocable<const Handler&, First&, const M&> || std::invocable<const Handler&, First&, Delivery&, const M&>;

/// Whether `First` is a session, and the handler takes the connection of a client library instead.
template <class Handler, class M, class First>
inline constexpr bool is_for_native_connection =
    std::same_as<First, soci::session> && !takes_first<Handler, M, First> &&
    takes_first<Handler, M, const HandlerConnection>;

/// Calls `handler` with `message` and with what its consumer passes: a session and a delivery, or a lease. The handler
/// may omit the delivery.
template <class Handler, class M, class First, class... More>
void call_handler(const Handler& handler, const M& message, First& first, More&... more) {
  if constexpr (std::invocable<const Handler&, First&, More&..., const M&>) {
    call(handler, first, more..., message);
  } else {
    static_assert(std::invocable<const Handler&, First&, const M&>,
                  "a handler takes (soci::session&, const M&), (soci::session&, txinbox::Delivery&, const M&) or "
                  "(txinbox::Lease&, const M&), and what it changes it holds by reference");
    call(handler, first, message);
  }
}

/// The function object that `idempotent` returns.
template <class Consumer, class KeyOf, class Handler>
class Idempotent {
 public:
  Idempotent(Consumer& consumer, KeyOf key_of, Handler handler)
      : consumer_(&consumer), key_of_(std::move(key_of)), handler_(std::move(handler)) {}

  template <class M>
  Result operator()(const M& message) const {
    return consumer_->consume(
        message_from(key_of_, message),
        [&]<class First, class... More>(
            First & first, More & ... more) -> void requires(!is_for_native_connection<Handler, M, First>) {
          call_handler(handler_, message, first, more...);
        });
  }

 private:
  Consumer* consumer_;
  KeyOf key_of_;
  Handler handler_;
};

}  // namespace detail
/// @endcond

/// Makes a service's own handler idempotent. It returns a function that takes the service's own message, consumes it,
/// and returns the `Result`.
///
///     auto on_order = txinbox::idempotent(consumer, &Order::no, insert_order);
///     txinbox::Result result = on_order(order);
///
/// @param consumer a `TxConsumer`, a `LeaseConsumer`, or another class with such a `consume`. The returned function
///                 keeps a reference to it, so it must outlive that function.
/// @param key_of   a member, a member function or any function of the message. It returns the business key (text or an
///                 integer), or the whole `Message`, with the broker's id and the content. It must return the same for
///                 each delivery of a message. See also `prefixed` and `JsonTemplate`.
/// @param handler  (soci::session&, const M&), (soci::session&, Delivery&, const M&) or, for a `LeaseConsumer`,
///                 (Lease&, const M&). It returns nothing, and may run several times: see `Handler`. Instead of the
///                 session it may take the connection of a client library, as a `Handler` may.
///
/// @blocking the returned function, as the consumer's `consume`. The message must not change meanwhile.
/// @errors   of the returned function: what `key_of` throws, before anything is sent; otherwise as `consume`. In both
///           cases `action_for` says what to do.
/// @threads  any number may call the returned function, if the consumer, `key_of` and `handler` allow it.
template <class Consumer, class KeyOf, class Handler>
auto idempotent(Consumer& consumer, KeyOf key_of, Handler handler) {
  return detail::Idempotent<Consumer, KeyOf, Handler>(consumer, std::move(key_of), std::move(handler));
}

/// A function that puts a prefix before a key: `prefixed("order:", &Order::no)`. With different prefixes, two kinds of
/// messages of one consumer cannot have the same key.
template <class KeyOf>
auto prefixed(std::string prefix, KeyOf key_of) {
  return [prefix = std::move(prefix), key_of = std::move(key_of)](const auto& message) {
    return prefix + detail::text_from(key_of, message);
  };
}

TXINBOX_API_END
}  // namespace txinbox
