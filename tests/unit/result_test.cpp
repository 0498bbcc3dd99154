#include <new>
#include <stdexcept>

#include <doctest/doctest.h>
#include <soci/mysql/soci-mysql.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/failure.hpp"

namespace txinbox {
namespace {

template <class E>
std::exception_ptr thrown(E error) {
  return std::make_exception_ptr(error);
}

std::exception_ptr mysql(int number) {
  return thrown(soci::mysql_soci_error("Duplicate entry Deadlock found", number));
}

std::exception_ptr postgresql(const char* state) {
  return thrown(soci::postgresql_soci_error("deadlock detected", state));
}

TEST_CASE("each outcome has its action") {
  CHECK(action_for(Result{Outcome::consumed}) == Action::acknowledge);
  CHECK(action_for(Result{Outcome::already_consumed}) == Action::acknowledge);
  CHECK(action_for(Result{Outcome::conflict}) == Action::dead_letter);
  CHECK(action_for(Result{Outcome::parked}) == Action::dead_letter);
  CHECK(action_for(Result{Outcome::in_progress}) == Action::redeliver);
  CHECK(action_for(Result{Outcome::postponed}) == Action::redeliver);
  CHECK(action_for(Result{Outcome::not_run}) == Action::redeliver);
  CHECK(action_for(Result{.outcome = Outcome::failed, .error = thrown(Error(ErrorCode::rejected, ""))}) ==
        Action::dead_letter);
  CHECK(action_for(Result{.outcome = Outcome::failed, .error = thrown(std::runtime_error(""))}) == Action::redeliver);
}

TEST_CASE("each error has its action, and an unknown error is delivered again") {
  const auto action_of = [](ErrorCode code) { return action_for(thrown(Error(code, ""))); };
  CHECK(action_of(ErrorCode::invalid_key) == Action::dead_letter);
  CHECK(action_of(ErrorCode::rejected) == Action::dead_letter);
  CHECK(action_of(ErrorCode::invalid_message) == Action::dead_letter);
  CHECK(action_of(ErrorCode::unreadable) == Action::dead_letter);
  CHECK(action_of(ErrorCode::schema_missing) == Action::stop);
  CHECK(action_of(ErrorCode::schema_outdated) == Action::stop);
  CHECK(action_of(ErrorCode::schema_too_new) == Action::stop);
  CHECK(action_of(ErrorCode::schema_mismatch) == Action::stop);
  CHECK(action_of(ErrorCode::unsafe_connection) == Action::stop);
  CHECK(action_of(ErrorCode::access_refused) == Action::stop);
  CHECK(action_of(ErrorCode::transaction_open) == Action::stop);
  CHECK(action_of(ErrorCode::retry_later) == Action::redeliver);
  CHECK(action_of(ErrorCode::transaction_lost) == Action::redeliver);
  CHECK(action_of(ErrorCode::acquire_timeout) == Action::redeliver);
  CHECK(action_of(ErrorCode::unknown_state) == Action::redeliver);
  CHECK(action_for(thrown(std::runtime_error(""))) == Action::redeliver);
  CHECK(action_for(thrown(42)) == Action::redeliver);
  CHECK(action_for(std::exception_ptr()) == Action::redeliver);
}

TEST_CASE("the code decides what is an error of the environment: it is delivered again, without a retry") {
  const auto is_environment = [](const std::exception_ptr& error) {
    return detail::Failure(error).is_of_environment() && !is_transient(error) && action_for(error) == Action::redeliver;
  };
  for (const int number :
       {1021, 1028, 1030, 1037, 1038, 1041, 1046, 1049, 1114, 1146, 1206, 1226, 1461, 1637, 1932, 2008, 3100}) {
    CAPTURE(number);
    CHECK(is_environment(mysql(number)));
  }
  for (const char* state : {"53000", "53100", "53200", "53400", "58000", "58030", "58P01", "XX000", "XX001", "42P01"}) {
    CAPTURE(state);
    CHECK(is_environment(postgresql(state)));
  }
  // A full disk, I/O, an extended code of I/O, no memory, a corrupt file, not a database.
  for (const int code : {13, 10, 266, 7, 11, 26}) {
    CAPTURE(code);
    CHECK(is_environment(thrown(soci::sqlite3_soci_error("locked", code))));
  }
  CHECK(is_environment(thrown(std::bad_alloc())));
  for (const auto& error : {mysql(1062), mysql(1213), mysql(1064), postgresql("23505"), postgresql("42601"),
                            postgresql("53300"), thrown(soci::sqlite3_soci_error("disk full", 1)),
                            thrown(std::runtime_error("disk full")), std::exception_ptr()}) {
    CHECK(!detail::Failure(error).is_of_environment());
  }
}

TEST_CASE("the code decides what is a transient error, and not the text") {
  for (const int number :
       {1213, 1205, 1020, 2006, 2013, 4031, 1053, 1927, 1317, 1969, 3024, 2002, 2005, 3101, 2003, 1129,
        1290, 1836, 1792, 1047, 1040, 1135, 1158, 1159, 1160, 1161, 1412, 1615, 1689, 3058, 3572}) {
    CAPTURE(number);
    CHECK(is_transient(mysql(number)));
  }
  for (const int number : {1062, 1048, 4025, 3819, 1452, 1406, 1064, 1045}) {
    CAPTURE(number);
    CHECK(!is_transient(mysql(number)));
  }
  for (const char* state : {"40P01", "55P03", "40000", "40001", "40003", "08000", "08001", "08006", "57P01", "57P02",
                            "57P03", "57014", "25006", "25P03", "25P04", "53300", "57P04"}) {
    CAPTURE(state);
    CHECK(is_transient(postgresql(state)));
  }
  for (const char* state : {"23505", "23502", "23514", "23503", "22001", "54000", "42601", "25P02"}) {
    CAPTURE(state);
    CHECK(!is_transient(postgresql(state)));
  }
  CHECK(is_transient(thrown(Error(ErrorCode::acquire_timeout, ""))));
  CHECK(!is_transient(thrown(Error(ErrorCode::transaction_lost, ""))));
  CHECK(!is_transient(thrown(soci::soci_error("deadlock"))));
  CHECK(!is_transient(thrown(std::runtime_error("deadlock"))));
  CHECK(!is_transient(std::exception_ptr()));
}

}  // namespace
}  // namespace txinbox
