#include "outbox/part_leases.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/table_check.hpp"
#include "base/process.hpp"
#include "pool/with_session.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

PartLeases::PartLeases(SessionProvider& source, std::chrono::milliseconds lease)
    : source_(source), lease_(lease), name_(host_and_process()) {}

void PartLeases::give_up() noexcept {
  entered_ = false;
  expires_ = {};
  parts_.clear();
}

/// Makes a new token each time. After a lost reply or an expired lease, the row of the old token may or may not exist.
void PartLeases::enter(const OutboxPartTable& table) {
  give_up();
  token_ = Token::random();
  const auto sent = Clock::now();
  table.enter(token_, name_, lease_);
  entered_ = true;
  expires_ = sent + lease_;
}

bool PartLeases::renew(const std::stop_token& stop) {
  if (!entered_) return false;
  with_session(source_, stop, [&](backend::Session& session) {
    const auto sent = Clock::now();
    if (OutboxPartTable(session).renew(token_, lease_)) {
      expires_ = sent + lease_;
    } else {
      give_up();
    }
  });
  return entered_;
}

bool PartLeases::refresh(const std::stop_token& stop) {
  const bool renewed = renew(stop);
  return with_session(source_, stop, [&](backend::Session& session) {
    const OutboxPartTable table(session);
    if (!renewed) {
      refuse_all_shards(session.connection_ptr());
      enter(table);
    }
    table.remove_expired();
    return balance(table);
  });
}

bool PartLeases::balance(const OutboxPartTable& table) {
  // Read the relays after the parts. If an owner of a part is missing then, its row was removed, and its token never
  // comes back.
  const auto all = table.parts();
  if (all.size() != backend::outbox_parts) {
    throw Error(ErrorCode::schema_mismatch,
                fmt::format("{} has {} of its {} rows, so messages would stay in the outbox; run `txinbox migrate`",
                            backend::outbox_part_table, all.size(), backend::outbox_parts));
  }
  const std::set<std::string> relays = table.relays();
  const std::string us = token_.hex();
  std::vector<int> mine, free;
  std::set<std::string> former_owners;
  for (const auto& [part, owner] : all) {
    if (owner == us) {
      mine.push_back(part);
    } else if (!relays.contains(owner)) {
      free.push_back(part);
      if (!owner.empty()) former_owners.insert(owner);
    }
  }
  const std::size_t others = relays.size() - relays.count(us);
  const std::size_t share = (all.size() + others) / (others + 1);

  // Give parts back first. Afterwards another relay may publish them at once.
  if (mine.size() > share) {
    const std::vector<int> surplus(mine.begin() + static_cast<std::ptrdiff_t>(share), mine.end());
    for (const int part : surplus) parts_.erase(part);
    table.give_back(token_, surplus);
    mine.resize(share);
  }
  if (mine.size() < share && !free.empty()) {
    free.resize(std::min(free.size(), share - mine.size()));
    table.take(token_, free, former_owners);
    mine.clear();
    for (const auto& [part, owner] : table.parts()) {
      if (owner == us) mine.push_back(part);
    }
  }
  std::set<int> now(mine.begin(), mine.end());
  const bool took = !std::ranges::includes(parts_, now);
  parts_ = std::move(now);
  return took;
}

void PartLeases::leave() noexcept {
  if (!entered_) return;
  try {
    with_session(source_, {}, [&](backend::Session& session) { OutboxPartTable(session).leave(token_); });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the lease expires by itself
  }
  give_up();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
