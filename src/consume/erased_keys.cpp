#include "consume/erased_keys.hpp"

#include <utility>

#include "pool/with_session.hpp"
#include "tables/erased_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

ErasedKeyReading::ErasedKeyReading(backend::Session& session, const std::string& consumer) {
  for (ErasedMessage& each : ErasedMessageTable(session, consumer).read()) {
    entries_.emplace(std::move(each.key),
                     Entry{each.is_consumed ? Outcome::already_consumed : Outcome::discarded, begin_ - each.age});
  }
}

std::optional<Result> ErasedKeyReading::find(const std::string& consumer, const Message& message) const {
  if (entries_.empty()) return std::nullopt;
  const auto found = entries_.find(erased_key(consumer, message.business_key));
  if (found == entries_.end()) return std::nullopt;
  Result result{.outcome = found->second.outcome};
  if (result.outcome == Outcome::already_consumed) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - found->second.since);
    if (message.valid_for.count() > 0 && age >= message.valid_for) return std::nullopt;
    result.age = age;
  }
  return result;
}

ErasedKeys::Reading ErasedKeys::read(SessionProvider& source, const std::string& consumer,
                                     const std::stop_token& stop) {
  if (auto reading = latest()) return reading;
  return with_session(source, stop, [&](backend::Session& session) { return read(session, consumer); });
}

ErasedKeys::Reading ErasedKeys::read(backend::Session& session, const std::string& consumer) {
  if (auto reading = latest()) return reading;
  const std::lock_guard lock(reading_);
  if (auto reading = latest()) return reading;
  return take(session, consumer);
}

/// Returns null if the latest reading is old.
ErasedKeys::Reading ErasedKeys::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_ && !latest_->is_old() ? latest_ : nullptr;
}

ErasedKeys::Reading ErasedKeys::take(backend::Session& session, const std::string& consumer) {
  auto reading = std::make_shared<const ErasedKeyReading>(session, consumer);
  const std::lock_guard lock(mutex_);
  latest_ = reading;
  return reading;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
