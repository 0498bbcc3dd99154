#include "cli/operator_options.hpp"

#include <pwd.h>
#include <unistd.h>

namespace txinbox::cli {
namespace {

std::string system_user() {
  const uid_t user = ::getuid();
  const passwd* found = ::getpwuid(user);
  return found != nullptr && *found->pw_name != '\0' ? std::string(found->pw_name) : std::to_string(user);
}

}  // namespace

Option OperatorOptions::add_to(Command command, const char* name) {
  command.option("--by", actor, "Who does it, for the audit; without it, the name of the system's user").type("NAME");
  return command.option(name, reason, "Why, for the audit").type("TEXT");
}

OperatorAction OperatorOptions::action() const {
  return {.actor = actor.empty() ? system_user() : actor, .reason = reason};
}

}  // namespace txinbox::cli
