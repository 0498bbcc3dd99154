#include "torture/answer_for.hpp"

#include <txinbox/error.hpp>

#include "console/describe_error.hpp"

namespace txinbox::torture {

Answer answer_for(const Result& result, bool is_planned) {
  if (result.outcome == Outcome::failed) return answer_for(result.error, is_planned);
  return {.outcome = result.outcome,
          .action = action_for(result),
          .stored = result.stored,
          .retry_after = result.retry_after};
}

Answer answer_for(const std::exception_ptr& error, bool is_planned) {
  Answer answer{.outcome = Outcome::failed, .action = action_for(error)};
  answer.failure = is_transient(error) ? Failure::transient : is_planned ? Failure::by_handler : Failure::unexpected;
  // The storm's values are not secret, so the database's own text is shown.
  if (answer.failure == Failure::unexpected) answer.why = describe_error(error, true);
  return answer;
}

}  // namespace txinbox::torture
