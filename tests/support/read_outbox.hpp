#pragma once

#include <memory>
#include <set>

#include <soci/soci.h>

#include "pool/inbox_session.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/outbox_parts.hpp"
#include "support/test_database.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox::test {

/// The rows of all parts, as a relay reads them.
struct ReadOutbox {
  ReadOutbox() = default;

  const TestDatabase db;
  const std::set<int> parts = all_outbox_parts();
  const std::unique_ptr<soci::session> sql = db.session();
  const detail::InboxSession session{backend::connection_of(*sql)};
  const detail::OutboxMessageTable table{*session};
};

}  // namespace txinbox::test
