#pragma once

#include <exception>

#include <txinbox/result.hpp>

#include "torture/messages.hpp"

namespace txinbox::torture {

/// What a worker answers to the broker for a result, or for an error that `consume` threw. `is_planned`: the handler
/// failed on purpose.
Answer answer_for(const Result& result, bool is_planned);
Answer answer_for(const std::exception_ptr& error, bool is_planned);

}  // namespace txinbox::torture
