#include "cli/row_options.hpp"

#include <fmt/format.h>

#include "console/output.hpp"
#include "console/usage_error.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {

void RowOptions::add_to(Command command) {
  database.add_to(command);
  command.option("--consumer", consumer, "The consumer's name").required().type("NAME");
  command.option("key", key, "The business key; write -- before a key that begins with a dash")
      .shown_as("[BUSINESS_KEY]");
  add_keys_from(command, keys_from);
  command.flag("--json", json, "Print JSON; with --keys-from, one object in each line");
}

std::vector<FileKey> RowOptions::keys(const std::string& command) const {
  if (has_file() && !key.empty()) {
    throw UsageError(fmt::format("{}: either a BUSINESS_KEY or --keys-from FILE, not both", command));
  }
  if (has_file()) return read_keys(keys_from);
  if (key.empty()) throw UsageError(fmt::format("{}: give a BUSINESS_KEY, or --keys-from FILE", command));
  return {{key, 0}};
}

void RowOptions::say_no_row(const FileKey& each) const {
  message(has_file() ? fmt::format("txinbox: line {}: there is no row of the business key '{}'", each.line,
                                   printable(each.key))
                     : fmt::format("txinbox: there is no row of the consumer '{}' and the business key '{}'",
                                   printable(consumer), printable(each.key)));
}

}  // namespace txinbox::cli
