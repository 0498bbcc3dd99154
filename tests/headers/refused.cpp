// Handlers that a consumer must not accept, and an enum with a value that has no name. Each case is compiled
// separately. The compiler must refuse it with a text that says what to do. Without any case, the file must compile.

#include <txinbox/txinbox.hpp>

#include <coroutine>
#include <system_error>

#include "types/enum_names.hpp"

using txinbox::Delivery;
using txinbox::Lease;

/// A coroutine that starts only when it is resumed.
struct LazyTask {
  struct promise_type {
    LazyTask get_return_object() { return {}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};

enum class Size { small, large };
constexpr txinbox::detail::EnumNames<Size, Size::large> size_names("small", "large");
#if defined(LAST_VALUE_HAS_NO_NAME)
constexpr txinbox::detail::EnumNames<Size, Size::small> too_few_names("small");
#endif

void use(txinbox::TxConsumer& consumer, txinbox::LeaseConsumer& leases, std::span<const txinbox::Message> messages) {
  const txinbox::Message message{.business_key = "k"};
  (void)consumer.consume(message, [](soci::session&, Delivery&) {});
  (void)consumer.consume(message, [](soci::session&) {});
  (void)consumer.consume_batch(messages, [](soci::session&, Delivery&) {});
  (void)consumer.consume_batch(messages, [](soci::session&, std::span<Delivery>) {});
  (void)leases.consume(message, [](Lease&) {});
#if defined(RETURNS_BOOL)
  (void)consumer.consume(message, [](soci::session&, Delivery&) { return false; });
#elif defined(RETURNS_BOOL_WITHOUT_DELIVERY)
  (void)consumer.consume(message, [](soci::session&) { return false; });
#elif defined(BATCH_RETURNS_ERROR_CODE)
  (void)consumer.consume_batch(messages, [](soci::session&, Delivery&) { return std::error_code(); });
#elif defined(BATCH_HANDLER_RETURNS_BOOL)
  (void)consumer.consume_batch(messages, [](soci::session&, std::span<Delivery>) { return true; });
#elif defined(BATCH_HANDLER_FOR_ONE)
  (void)consumer.consume(message, [](soci::session&, std::span<Delivery>) {});
#elif defined(LEASE_RETURNS_BOOL)
  (void)leases.consume(message, [](Lease&) { return true; });
#elif defined(IS_COROUTINE)
  (void)consumer.consume(message, [](soci::session&, Delivery&) -> LazyTask { co_return; });
#elif defined(TAKES_SOMETHING_ELSE)
  (void)consumer.consume(message, [](int) {});
#endif
}
