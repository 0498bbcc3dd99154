#include "torture/outbox_handler.hpp"

#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/outbox.hpp>

#include "torture/outbox_sink.hpp"
#include "torture/scratch_tables.hpp"

namespace txinbox::torture {

void add_messages(soci::session& sql, const KeyPlan& key, const std::string& run) {
  if (key.messages == 0) return;
  long long change = 0;
  sql << fmt::format("update {} set touched = touched + 1 where id = :id", account_table), soci::use(key.transfer.from);
  sql << fmt::format("select touched from {} where id = :id", account_table), soci::into(change),
      soci::use(key.transfer.from);
  std::vector<OutgoingMessage> messages;
  for (unsigned number = 1; number <= key.messages; ++number) {
    messages.push_back({.topic = outbox_topic,
                        .key = key.outbox_key,
                        .type = "Transfer",
                        .payload = to_text({.run = run, .number = number, .change = change})});
  }
  if (key.is_prepared) {
    Outbox::add(sql, messages);
  } else {
    for (const OutgoingMessage& message : messages) Outbox::add(sql, message);
  }
}

}  // namespace txinbox::torture
