#include "tables/outbox_scope.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/query.hpp"
#include "backend/table_check.hpp"
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
  return derived_message_id(outbox_database_id(session_), consumer_, business_key_, added_++);
}

std::string random_message_id() { return format_uuid(std::string(Token::random().bytes()), 4); }

const std::string& outbox_database_id(backend::Session& session) {
  const void* const handle = session.connection_ptr()->handle();
  const std::string table = session.dialect().table(backend::outbox_database_table);
  backend::Session::DatabaseId& known = session.database_id();
  if (known.handle == handle && known.table == table) return known.id;
  std::string id =
      backend::query_text(*session.connection_ptr(),
                          fmt::format("SELECT {} FROM {} WHERE one = 1", session.dialect().hex_token("id"), table));
  if (id.empty()) {
    throw Error(ErrorCode::schema_mismatch,
                fmt::format("{} has no row; insert the row as migrations/*/V2__outbox.sql does", table));
  }
  known = {.handle = handle, .table = table, .id = std::move(id)};
  return known.id;
}

std::string derived_message_id(std::string_view database, std::string_view consumer, std::string_view business_key,
                               std::uint64_t number) {
  // None of the names contains NUL, so the separators are unambiguous.
  const ContentHash hash(
      fmt::format("txinbox outbox{0}{1}{0}{2}{0}{3}{0}{4}", '\0', database, consumer, business_key, number));
  return format_uuid(std::string(hash.bytes().substr(0, 16)), 8);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
