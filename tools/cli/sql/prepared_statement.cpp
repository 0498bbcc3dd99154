#include "cli/sql/prepared_statement.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>

namespace txinbox::cli {

// Swapped, so that no value is copied and none stays behind.
class PreparedStatement::Loan {
 public:
  Loan(std::vector<Variable>& variables, Values& values) : variables_(variables), values_(values) {
    for (auto& variable : variables_) {
      auto& value = values_[variable.value];
      const bool null = std::holds_alternative<std::monostate>(value);
      variable.indicator = null ? soci::i_null : soci::i_ok;
      if (!null) variable.content.swap(value);
    }
  }
  ~Loan() {
    for (auto& variable : variables_) {
      if (variable.indicator == soci::i_ok) variable.content.swap(values_[variable.value]);
    }
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  std::vector<Variable>& variables_;
  Values& values_;
};

PreparedStatement::PreparedStatement(soci::session& session, const Statement& statement, const Values& values,
                                     Runs runs)
    : statement_(session) {
  for (const auto at : statement.values) {
    // A type for NULL: what comes most often in its place.
    BoundValue content = std::visit(
        [](const auto& value) -> BoundValue {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::monostate>) return std::string();
          return Value();
        },
        values[at]);
    variables_.push_back({at, std::move(content), soci::i_null});
  }
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    auto& variable = variables_[i];
    std::visit(
        [&](auto& content) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(content)>, std::monostate>) {
            statement_.exchange(soci::use(content, variable.indicator, statement.names[i]));
          }
        },
        variable.content);
  }
  statement_.alloc();
  statement_.prepare(statement.text,
                     runs == Runs::once ? soci::details::st_one_time_query : soci::details::st_repeatable_query);
  statement_.define_and_bind();
}

bool PreparedStatement::fits(const Values& values) const {
  return std::all_of(variables_.begin(), variables_.end(), [&](const Variable& variable) {
    const auto& value = values[variable.value];
    return std::holds_alternative<std::monostate>(value) || value.index() == variable.content.index();
  });
}

bool PreparedStatement::run(Values& values) {
  const Loan loan(variables_, values);
  return statement_.execute(true);
}

}  // namespace txinbox::cli
