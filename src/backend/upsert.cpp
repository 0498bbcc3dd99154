#include "backend/upsert.hpp"
#include "backend/database_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

namespace {

/// Calls `insert`, and returns its result. If the key has a row, returns what `insert` returns when it inserts no row.
template <class Insert>
auto unless_duplicate(const Insert& insert) -> decltype(insert()) {
  try {
    return insert();
  } catch (const DatabaseError&) {
    if (current_database_error()->error_class() != ErrorClass::duplicate_key) throw;
    return {};
  }
}

}  // namespace

bool try_insert(Session& session, const std::string& insert, UniqueKey key, TransactionUse use) {
  return unless_duplicate([&] { return session.run(insert + session.dialect().unless_exists(key.columns), use) > 0; });
}

std::optional<std::int64_t> try_insert_kept(Session& session, const KeptStatement& insert,
                                            std::span<const Parameter> values) {
  return unless_duplicate([&] { return session.change_kept(insert, values).number; });
}

// Each database has a statement of its own that updates or inserts. This function needs none of them.
void change_or_insert(Session& session, const std::string& update, const std::string& insert, UniqueKey key) {
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    if (session.change(update) > 0 || try_insert(session, insert, key)) return;
  }
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
