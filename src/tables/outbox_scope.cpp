#include "tables/outbox_scope.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/token.hpp"
#include "base/uuid.hpp"
#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The claims of this thread. The latest claim is the last one. A claim is expired after its scope has ended.
std::vector<std::weak_ptr<OutboxClaim>>& claims() noexcept {
  thread_local std::vector<std::weak_ptr<OutboxClaim>> all;
  return all;
}

}  // namespace

OutboxScope::OutboxScope(backend::Session& session, std::string_view consumer, std::string_view business_key,
                         bool key_recurs)
    : claim_(std::make_shared<OutboxClaim>(session, consumer, business_key, key_recurs)) {
  std::erase_if(claims(), [](const auto& claim) { return claim.expired(); });
  claims().push_back(claim_);
}

std::shared_ptr<OutboxClaim> OutboxScope::on(const void* handle) noexcept {
  for (auto at = claims().rbegin(); at != claims().rend(); ++at) {
    auto claim = at->lock();
    if (claim && claim->session().connection_ptr()->handle() == handle) return claim;
  }
  return nullptr;
}

std::string OutboxClaim::next_id() {
  if (key_recurs_) return {};
  return derived_message_id(consumer_, business_key_, added_++);
}

std::string random_message_id() { return format_uuid(std::string(Token::random().bytes()), 4); }

std::string derived_message_id(std::string_view consumer, std::string_view business_key, std::uint64_t number) {
  // Neither name contains NUL, so the separators are unambiguous.
  const ContentHash hash(fmt::format("txinbox outbox{0}{1}{0}{2}{0}{3}", '\0', consumer, business_key, number));
  return format_uuid(std::string(hash.bytes().substr(0, 16)), 8);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
