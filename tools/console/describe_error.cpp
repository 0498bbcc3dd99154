#include "console/describe_error.hpp"

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/error.hpp>

#ifdef TXINBOX_WITH_SQLITE3
#include <soci/sqlite3/soci-sqlite3.h>
#endif
#ifdef TXINBOX_WITH_MYSQL
#include <soci/mysql/soci-mysql.h>
#endif
#ifdef TXINBOX_WITH_POSTGRESQL
#include <soci/postgresql/soci-postgresql.h>
#endif

#include "console/error_meanings.hpp"
#include "console/output.hpp"

namespace txinbox::cli {
namespace {

struct Described {
  std::string code;
  std::string text;
  bool says_all = false;  // the database's own text would add nothing but the names of SOCI's functions
};

Described describe(const soci::soci_error& error) {
  auto with_meaning = [](const char* what, const std::string& code, std::string_view meaning) -> Described {
    return {
        .code = code,
        .text = meaning.empty() ? fmt::format("{} {}", what, code) : fmt::format("{} {} ({})", what, code, meaning)};
  };
#ifdef TXINBOX_WITH_SQLITE3
  if (const auto* e = dynamic_cast<const soci::sqlite3_soci_error*>(&error)) {
    auto described = with_meaning("SQLite error", std::to_string(e->result()), sqlite3_meaning(e->result()));
    described.says_all = sqlite3_meaning_says_all(e->result());
    return described;
  }
#endif
#ifdef TXINBOX_WITH_MYSQL
  if (const auto* e = dynamic_cast<const soci::mysql_soci_error*>(&error)) {
    return with_meaning("MariaDB/MySQL error", std::to_string(e->err_num_),
                        mysql_meaning(static_cast<int>(e->err_num_)));
  }
#endif
#ifdef TXINBOX_WITH_POSTGRESQL
  if (const auto* e = dynamic_cast<const soci::postgresql_soci_error*>(&error)) {
    const std::string state = e->sqlstate();
    if (state.find_first_not_of(' ') == std::string::npos)
      return {.code = "", .text = "PostgreSQL error without a code"};
    return with_meaning("PostgreSQL SQLSTATE", state, postgresql_meaning(state));
  }
#endif
  return {.code = "", .text = "database error without a code"};
}

}  // namespace

std::string describe_error(const std::exception_ptr& error, bool verbose) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.what();
  } catch (const soci::soci_error& e) {
    const auto described = describe(e);
    if (!verbose || described.says_all) return described.text;
    return fmt::format("{}: {}", described.text, one_line(e.get_error_message()));
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an error of an unknown kind";
  }
}

std::string error_code(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error& e) {
    return describe(e).code;
  } catch (...) {
    return {};
  }
}

}  // namespace txinbox::cli
