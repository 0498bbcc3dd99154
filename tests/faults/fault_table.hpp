#pragma once

#include <string>

namespace txinbox::test {

/// Counts a case of the fault `kind`, tried on `subject`, and one of the holes that docs/guard.md
/// names if it ended in one. When the program ends it prints the table of all of them, in the form
/// of docs/reliability.md. Threads: any number.
void count_case(const std::string& kind, const std::string& subject, bool hole = false);

}  // namespace txinbox::test
