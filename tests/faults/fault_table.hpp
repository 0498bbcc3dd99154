#pragma once

#include <string>

namespace txinbox::test {

/// A deviation that a case is allowed to end with.
enum class Mark {
  none,
  lost,    ///< The effect of an acknowledged message is lost. Only settings that are not durable may cause this.
  doubled  ///< The handler took effect more than once. Only a transaction promises that this does not happen.
};

/// Counts a case of the fault `kind`, tried on `subject`, and its mark. When the program ends, it prints the table of
/// all cases in the form of docs/internals/reliability.md. Any number of threads may call it at the same time.
void count_case(const std::string& kind, const std::string& subject, Mark mark = Mark::none);

}  // namespace txinbox::test
