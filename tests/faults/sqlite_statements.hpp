#pragma once

#include <functional>

namespace txinbox::test {

enum class AtStatement { begins, begins_and_ends };

/// Runs `at_point` before and after each statement of every connection that this process opens from now on. A call with
/// an empty function ends this.
void at_each_sqlite_statement(std::function<void()> at_point, AtStatement = AtStatement::begins_and_ends);

}  // namespace txinbox::test
