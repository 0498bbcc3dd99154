#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/script.hpp"

using txinbox::backend::statements_of;
using Strings = std::vector<std::string>;

TEST_CASE("a migration is split at semicolons, without its comments") {
  CHECK(statements_of("-- a; b\nSELECT 1; SELECT ';' -- c\n, `d;`;\n\n") == Strings{"SELECT 1", "SELECT ';' \n, `d;`"});
  CHECK(statements_of("").empty());
}

TEST_CASE("a line with DELIMITER changes what ends a statement, until the next one") {
  CHECK(statements_of("A;\nDELIMITER //\nBEGIN x; y; END //\n-- z; //\nB //\nDELIMITER ;\nC; D") ==
        Strings{"A", "BEGIN x; y; END", "B", "C", "D"});
  CHECK(statements_of("SELECT 'DELIMITER //'; SELECT DELIMITER x;") ==
        Strings{"SELECT 'DELIMITER //'", "SELECT DELIMITER x"});
  CHECK(statements_of("DELIMITER $$\nA $$") == Strings{"A"});
}
