#pragma once

#include <exception>
#include <map>
#include <string>
#include <type_traits>

#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Errors: `Error` invalid_argument if one of the listeners is null.
void check(const Listeners&);

/// These functions pass an event to the listeners, and ignore what they throw. The first one adds the class of the
/// event's error.
void notify(const Listeners&, Event) noexcept;
void notify(const Listeners&, const RunEvent&) noexcept;
void notify(const Listeners&, const RelayEvent&) noexcept;

void notify(const Listeners&, const Publication&) noexcept;

/// Lets the listeners change the headers of a message that goes out. What a listener that throws has changed is
/// dropped.
void outgoing(const Listeners&, const OutgoingMessage&, std::map<std::string, std::string>& headers);

/// Calls the user's code. An exception of that code must not change the result of a delivery.
template <class Call>
void ignore_errors(const Call& call) noexcept {
  try {
    call();
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
}

/// These functions tell all listeners that a scope begins, or that it has ended. They ignore what a listener throws.
void begin_scope(const Listeners&, const Scope&) noexcept;
void end_scope(const Listeners&, const Scope&, const std::exception_ptr& error) noexcept;

/// While it exists, the listeners learn of no scopes of this thread: what runs is no delivery.
class NoScopes {
 public:
  NoScopes() noexcept;
  ~NoScopes();
  NoScopes(const NoScopes&) = delete;
  NoScopes& operator=(const NoScopes&) = delete;

  static bool here() noexcept;

 private:
  const bool outer_;
};

/// Runs `work` in a scope, and returns its result.
template <class Work>
auto run_in_scope(const Listeners& listeners, const Scope& scope, const Work& work) {
  if (listeners.empty()) return work();
  begin_scope(listeners, scope);
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      end_scope(listeners, scope, nullptr);
    } else {
      auto result = work();
      end_scope(listeners, scope, nullptr);
      return result;
    }
  } catch (...) {
    end_scope(listeners, scope, std::current_exception());
    throw;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
