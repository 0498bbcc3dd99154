#pragma once

#include <string>

namespace txinbox::test {

/// How a case can end besides as it should.
enum class Mark {
  none,
  lost,    ///< An acknowledged message's effect is gone, which only settings that are not durable may cause.
  doubled  ///< The handler took effect more than once, which is promised of a transaction alone.
};

/// Counts a case of the fault `kind`, tried on `subject`, and its mark. When the program ends it prints the table of
/// all of them, in the form of docs/internals/reliability.md. Threads: any number.
void count_case(const std::string& kind, const std::string& subject, Mark mark = Mark::none);

}  // namespace txinbox::test
